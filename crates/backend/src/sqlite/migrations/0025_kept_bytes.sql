-- How much is kept for accounts and topics, so that no write has to count it (`offline.rs`, `item.rs`).
ALTER TABLE account ADD COLUMN offline INTEGER NOT NULL DEFAULT 0;
ALTER TABLE account ADD COLUMN offline_bytes INTEGER NOT NULL DEFAULT 0;
UPDATE account SET (offline, offline_bytes) = (SELECT count(*), coalesce(sum(length(stanza)), 0) FROM offline o WHERE o.account = account.id)
    WHERE id IN (SELECT account FROM offline);
ALTER TABLE topic ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
UPDATE topic SET bytes = (SELECT coalesce(sum(length(CAST(i.id AS BLOB)) + length(i.payload)), 0) FROM item i WHERE i.topic = topic.id)
    WHERE id IN (SELECT topic FROM item);
