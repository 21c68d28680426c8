-- Whom, and what, accounts block in MUC Light.
CREATE TABLE room_block (
    account INTEGER NOT NULL REFERENCES account (id),
    is_room INTEGER NOT NULL,
    jid     TEXT    NOT NULL,
    PRIMARY KEY (account, is_room, jid)
) STRICT, WITHOUT ROWID;
