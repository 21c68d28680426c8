-- What a list of notifications shows beside how far they have come: the API key that sent one, null where none did, and
-- until when it was worth delivering.
ALTER TABLE notification ADD COLUMN key INTEGER;
ALTER TABLE trace ADD COLUMN key INTEGER;
ALTER TABLE trace ADD COLUMN expires INTEGER;
ALTER TABLE trace ADD COLUMN collapse_key TEXT;

-- An account's, newest first: with the id, the primary key, as its third column. Lists of everybody's notifications follow
-- the primary key, which sorts by time, and need no index. The price, measured with 100,000 accounts that take turns and
-- 300,000 traces: 35 bytes per trace, and 4.2 KB more of the write-ahead log for each notification that ends (5.9 instead
-- of 1.7 KB for one that is stored and ended, in groups of 500), because each trace goes to another page of the index.
CREATE INDEX trace_account ON trace (domain, local);
