-- Lines of batches that may be sent again under their idempotency keys: a digest of what was under each number first, eight bytes each, in
-- blocks of lines (`idempotency.rs`). Zero is a number under which nothing was sent. Named as the reservation is, not by its number,
-- which changes when it is renewed.
CREATE TABLE idempotency_line (
    key             INTEGER NOT NULL,
    idempotency_key TEXT    NOT NULL,
    block           INTEGER NOT NULL,
    digests         BLOB    NOT NULL,
    PRIMARY KEY (key, idempotency_key, block)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER idempotency_lines AFTER DELETE ON idempotency BEGIN
    DELETE FROM idempotency_line WHERE key = OLD.key AND idempotency_key = OLD.idempotency_key;
END;
