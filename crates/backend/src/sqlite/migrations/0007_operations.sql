-- Writes that were done and may be asked again, by the id of their operation, which begins with the time: new ones are added at the
-- end, and the oldest are forgotten at the beginning, so that a commit writes few pages for them.
CREATE TABLE operation (
    id      BLOB NOT NULL PRIMARY KEY,
    -- What it was, and what it was answered (`operation.rs`).
    outcome BLOB NOT NULL
) STRICT, WITHOUT ROWID;
