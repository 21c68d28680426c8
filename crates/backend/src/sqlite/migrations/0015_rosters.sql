-- The generation of an account's record, 0 while there was never anything in it; the one that last changed its roster; and how much that
-- holds: contacts that are listed, those that are not, bytes of both.
ALTER TABLE account ADD COLUMN record INTEGER NOT NULL DEFAULT 0;
ALTER TABLE account ADD COLUMN roster INTEGER NOT NULL DEFAULT 0;
ALTER TABLE account ADD COLUMN contacts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE account ADD COLUMN requests INTEGER NOT NULL DEFAULT 0;
ALTER TABLE account ADD COLUMN roster_bytes INTEGER NOT NULL DEFAULT 0;

-- What an account's roster says of a contact (`roster.rs`). `standing`: the bits of `Standing::bits`; `groups`: in the form of
-- `core::form`; `request`: what came with the contact's request for a subscription, while that is not answered.
CREATE TABLE contact (
    account  INTEGER NOT NULL REFERENCES account (id),
    jid      TEXT    NOT NULL,
    name     TEXT    NOT NULL,
    groups   BLOB,
    standing INTEGER NOT NULL,
    listed   INTEGER NOT NULL,
    request  BLOB,
    PRIMARY KEY (account, jid)
) STRICT, WITHOUT ROWID;
