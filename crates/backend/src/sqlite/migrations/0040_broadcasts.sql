-- Broadcasts: notifications for every account of a domain, each one row.
CREATE TABLE broadcast (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    id           BLOB    NOT NULL UNIQUE,
    domain       INTEGER NOT NULL REFERENCES domain (id),
    open         INTEGER NOT NULL,
    expires      INTEGER NOT NULL,
    ended        INTEGER,
    revision     INTEGER NOT NULL,
    bytes        INTEGER NOT NULL,
    -- Accounts that acknowledged it while it was open.
    acknowledged INTEGER NOT NULL DEFAULT 0,
    -- Whether `broadcast_end` may have rows of it.
    has_ends     INTEGER NOT NULL DEFAULT 1,
    -- The whole of it, in the form of values that leave a process.
    form         BLOB    NOT NULL
) STRICT;
CREATE INDEX broadcast_domain_id ON broadcast (domain, id);
CREATE INDEX broadcast_open ON broadcast (domain) WHERE open;
CREATE INDEX broadcast_expires ON broadcast (expires) WHERE open;
CREATE INDEX broadcast_ended ON broadcast (ended) WHERE ended IS NOT NULL;
CREATE INDEX broadcast_revision ON broadcast (revision);
CREATE INDEX broadcast_has_ends ON broadcast (domain) WHERE has_ends;

-- Accounts that acknowledged a broadcast. They are removed when it has ended.
CREATE TABLE broadcast_end (
    broadcast INTEGER NOT NULL,
    account   INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    by        INTEGER NOT NULL,
    PRIMARY KEY (broadcast, account)
) STRICT, WITHOUT ROWID;

-- How often each of those who count has counted that it was given.
CREATE TABLE broadcast_given (
    broadcast INTEGER NOT NULL,
    counter   INTEGER NOT NULL,
    given     INTEGER NOT NULL,
    PRIMARY KEY (broadcast, counter)
) STRICT, WITHOUT ROWID;

-- The revision of the last change of any broadcast.
ALTER TABLE node ADD COLUMN broadcast_revision INTEGER NOT NULL DEFAULT 0;
