-- Sessions that wait for the next process (`parked.rs`).
CREATE TABLE parked (
    number   INTEGER PRIMARY KEY,
    shard    INTEGER NOT NULL,
    shards   INTEGER NOT NULL,
    sessions INTEGER NOT NULL,
    written  INTEGER NOT NULL,
    bytes    BLOB    NOT NULL
) STRICT;
