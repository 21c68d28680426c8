-- The response that an idempotency key stands for is bytes that mean nothing to the store. HTTP's status goes before its body,
-- as the HTTP API writes both now, so that what was remembered before is given again as it was.
ALTER TABLE idempotency ADD COLUMN bytes BLOB;
UPDATE idempotency SET bytes = CAST(status || ' ' || response AS BLOB) WHERE status IS NOT NULL;
ALTER TABLE idempotency DROP COLUMN status;
ALTER TABLE idempotency DROP COLUMN response;
ALTER TABLE idempotency RENAME COLUMN bytes TO response;
