-- What a list of notifications shows beside how far they have come: the API key that sent one, null where none did, and
-- until when it was worth delivering.
ALTER TABLE notification ADD COLUMN key INTEGER;
ALTER TABLE trace ADD COLUMN key INTEGER;
ALTER TABLE trace ADD COLUMN expires INTEGER;
ALTER TABLE trace ADD COLUMN collapse_key TEXT;

-- An account's, newest first: with the id, the primary key, as its third column. Lists of everybody's notifications follow
-- the primary key, which sorts by time, and need no index. A later migration puts an index in runs in its place: here each
-- trace goes to another page, which in groups of 500 made 4.2 KB more of the write-ahead log per notification (5.9 instead of
-- 1.7 KB for one that is stored and ended; 100,000 accounts that take turns, 300,000 traces).
CREATE INDEX trace_account ON trace (domain, local);
