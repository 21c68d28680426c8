-- When messages that are kept for absent accounts end, where their senders gave a time (XEP-0079). The index holds those alone.
ALTER TABLE offline ADD COLUMN expires bigint;
CREATE INDEX offline_expires ON offline (expires, seq) WHERE expires IS NOT NULL;
