-- What is kept for the idempotency keys of an API key, in bytes, 128 for each beside its name, response and lines: a write that asks for it reads
-- one row (`idempotency.rs`).
ALTER TABLE api_key ADD COLUMN kept_bytes INTEGER NOT NULL DEFAULT 0;
UPDATE api_key SET kept_bytes =
    (SELECT coalesce(sum(128 + length(CAST(idempotency_key AS BLOB)) + coalesce(length(response), 0)), 0)
     FROM idempotency WHERE key = api_key.id)
    + (SELECT coalesce(sum(length(digests)), 0) FROM idempotency_line WHERE key = api_key.id);

CREATE TRIGGER idempotency_kept AFTER INSERT ON idempotency BEGIN
    UPDATE api_key SET kept_bytes = kept_bytes + 128 + length(CAST(NEW.idempotency_key AS BLOB)) + coalesce(length(NEW.response), 0)
    WHERE id = NEW.key;
END;
CREATE TRIGGER idempotency_answered AFTER UPDATE OF response ON idempotency BEGIN
    UPDATE api_key SET kept_bytes = kept_bytes + coalesce(length(NEW.response), 0) - coalesce(length(OLD.response), 0)
    WHERE id = NEW.key;
END;
CREATE TRIGGER idempotency_gone AFTER DELETE ON idempotency BEGIN
    UPDATE api_key SET kept_bytes = kept_bytes - 128 - length(CAST(OLD.idempotency_key AS BLOB)) - coalesce(length(OLD.response), 0)
    WHERE id = OLD.key;
END;
CREATE TRIGGER idempotency_line_kept AFTER INSERT ON idempotency_line BEGIN
    UPDATE api_key SET kept_bytes = kept_bytes + length(NEW.digests) WHERE id = NEW.key;
END;
CREATE TRIGGER idempotency_line_grown AFTER UPDATE OF digests ON idempotency_line BEGIN
    UPDATE api_key SET kept_bytes = kept_bytes + length(NEW.digests) - length(OLD.digests) WHERE id = NEW.key;
END;
CREATE TRIGGER idempotency_line_gone AFTER DELETE ON idempotency_line BEGIN
    UPDATE api_key SET kept_bytes = kept_bytes - length(OLD.digests) WHERE id = OLD.key;
END;

-- The keys of the whole node are counted without looking at those of domains.
CREATE INDEX api_key_node ON api_key (id) WHERE domain IS NULL;
