-- Who is blocked by an account (`blocking.rs`).
CREATE TABLE blocked (
    account INTEGER NOT NULL REFERENCES account (id),
    jid     TEXT    NOT NULL,
    PRIMARY KEY (account, jid)
) STRICT, WITHOUT ROWID;
