-- When accounts were available for the last time (`activity.rs`).
CREATE TABLE last_available (
    account INTEGER PRIMARY KEY REFERENCES account (id) ON DELETE CASCADE,
    at      INTEGER NOT NULL
) STRICT;
