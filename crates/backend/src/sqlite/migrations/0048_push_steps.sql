-- The pushes of notifications, which their traces show (`push.rs`): the last request to each registration, and how many there were. They are
-- forgotten with the trace.
CREATE TABLE push_step (
    notification BLOB    NOT NULL,
    -- It may have ended.
    registration INTEGER NOT NULL,
    name         TEXT    NOT NULL,
    -- By the numbers of rows/code.rs.
    kind         INTEGER NOT NULL,
    requests     INTEGER NOT NULL,
    sent         INTEGER NOT NULL,
    answered     INTEGER NOT NULL,
    state        INTEGER NOT NULL,
    reason       TEXT,
    PRIMARY KEY (notification, registration)
) STRICT, WITHOUT ROWID;

-- What wakes an app, by the bits of `PushWakes`; until now all of it. A push may tell of a message of a room.
ALTER TABLE push_registration ADD COLUMN wakes INTEGER NOT NULL DEFAULT 7;
ALTER TABLE push ADD COLUMN room_message INTEGER;
