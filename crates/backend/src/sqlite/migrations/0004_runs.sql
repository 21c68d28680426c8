-- The index of an account's ended notifications, in runs. A run holds the ids from its `first` up to the next run's, and a new one
-- begins once some thousand of the newest have ended (`run.rs`). In an index over all accounts each notification that ends goes
-- to another page, and a commit of 500 writes 500 pages more; the part of this index that is written to is one run: some tens
-- of pages. The order is the one of ids, as it is in the table, so the runs of an account, read one after the other from
-- the newest, are its list.
CREATE TABLE run (
    -- Ascending with `first`. The first run is always there; others are removed once their traces are forgotten.
    number INTEGER PRIMARY KEY,
    first  BLOB    NOT NULL UNIQUE
) STRICT;

-- What has ended before there were runs is one.
INSERT INTO run (number, first) VALUES (0, zeroblob(16));
ALTER TABLE trace ADD COLUMN run INTEGER NOT NULL DEFAULT 0;

DROP INDEX trace_account;
-- With the id, the primary key, as its fourth column.
CREATE INDEX trace_run ON trace (run, domain, local);
