-- Whether a chat message is acknowledged to its sender when it is stored or the recipient's client has acknowledged it.
ALTER TABLE domain ADD COLUMN messages_durable INTEGER NOT NULL DEFAULT 1;
