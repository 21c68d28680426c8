-- The pushes of notifications, which their traces show (`push.rs`): the last request to each registration, and how many there were. They are
-- forgotten with the trace.
CREATE TABLE push_step (
    notification uuid     NOT NULL,
    -- It may have ended.
    registration bigint   NOT NULL,
    name         text     NOT NULL,
    -- By the numbers of rows/code.rs.
    kind         smallint NOT NULL,
    requests     bigint   NOT NULL,
    sent         bigint   NOT NULL,
    answered     bigint   NOT NULL,
    state        smallint NOT NULL,
    reason       text,
    PRIMARY KEY (notification, registration)
);

-- What wakes an app, by the bits of `PushWakes`; until now all of it. A push may tell of a message of a room.
ALTER TABLE push_registration ADD COLUMN wakes smallint NOT NULL DEFAULT 7;
ALTER TABLE push ADD COLUMN room_message bigint;
