-- How long a session without a connection is kept at most, in milliseconds: a day.
ALTER TABLE domain ADD COLUMN resumption_ms_max INTEGER NOT NULL DEFAULT 86400000;
