-- What clients keep for themselves (`private.rs`), by the namespace and the name of the element.
CREATE TABLE private (
    account INTEGER NOT NULL REFERENCES account (id),
    ns      TEXT    NOT NULL,
    name    TEXT    NOT NULL,
    xml     BLOB    NOT NULL,
    PRIMARY KEY (account, ns, name)
) STRICT, WITHOUT ROWID;
