-- What a list of notifications shows beside how far they have come: the API key that sent one, null where none did, and
-- until when it was worth delivering.
ALTER TABLE notification ADD COLUMN key INTEGER;
ALTER TABLE trace ADD COLUMN key INTEGER;
ALTER TABLE trace ADD COLUMN expires INTEGER;
ALTER TABLE trace ADD COLUMN collapse_key TEXT;

-- An account's, newest first: with the id, the primary key, as its third column. Lists of everybody's notifications follow
-- the primary key, which sorts by time, and need no index.
CREATE INDEX trace_account ON trace (domain, local);
