-- How much the archives of a domain's accounts keep (`Policy`).
ALTER TABLE domain ADD COLUMN archive INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domain ADD COLUMN archive_days INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domain ADD COLUMN archive_messages_max INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domain ADD COLUMN archive_bytes_max INTEGER NOT NULL DEFAULT 0;

-- What an account wants in its archive: `ArchiveDefault`, and 8 where it has rules.
ALTER TABLE account ADD COLUMN archive INTEGER NOT NULL DEFAULT 0;

-- Whose messages enter an account's archive (1), or do not (0), whatever its default.
CREATE TABLE archive_rule (
    account INTEGER NOT NULL REFERENCES account (id),
    jid     TEXT    NOT NULL,
    wanted  INTEGER NOT NULL,
    PRIMARY KEY (account, jid, wanted)
) STRICT, WITHOUT ROWID;

-- The messages (`archive/`), once for both sides: in whose archives each is, and as which conversation. `seq` is never used twice: the newest
-- row is not deleted.
CREATE TABLE archive_message (
    seq            INTEGER PRIMARY KEY,
    received       INTEGER NOT NULL,
    sender         INTEGER,
    sender_peer    INTEGER,
    recipient      INTEGER,
    recipient_peer INTEGER,
    stanza         BLOB    NOT NULL
) STRICT;

-- With whom an account has a conversation. No row is used for another.
CREATE TABLE archive_peer (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    account INTEGER NOT NULL,
    jid     TEXT    NOT NULL,
    UNIQUE (account, jid)
) STRICT;

-- The messages of each archive, and of each conversation. The newest messages are not here yet: `archive/fold.rs`.
CREATE TABLE archive_entry (
    account INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    peer    INTEGER NOT NULL,
    PRIMARY KEY (account, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE archive_conversation (
    account INTEGER NOT NULL,
    peer    INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    PRIMARY KEY (account, peer, seq)
) STRICT, WITHOUT ROWID;

-- What an archive holds in `archive_entry`, and up to which message it was erased.
CREATE TABLE archive (
    account  INTEGER PRIMARY KEY,
    messages INTEGER NOT NULL DEFAULT 0,
    bytes    INTEGER NOT NULL DEFAULT 0,
    erased   INTEGER NOT NULL DEFAULT 0
) STRICT;

-- How far messages have entered those tables: all up to `folded`; up to `folding` those of accounts below `account`, and of `account` itself
-- those up to `seq`.
CREATE TABLE archive_fold (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    folded  INTEGER NOT NULL DEFAULT 0,
    folding INTEGER NOT NULL DEFAULT 0,
    account INTEGER NOT NULL DEFAULT 0,
    seq     INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO archive_fold (one) VALUES (1);
