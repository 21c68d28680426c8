-- That one of several holders has something to itself until a time.
CREATE TABLE lease (
    name   TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    until  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
-- Those that have ended are found by it.
CREATE INDEX lease_until ON lease (until);
