-- The registrations that want every message of a room (`push.rs`), found by the room: a message costs one search where there are none, however many members the
-- room has. An account is taken out with its membership.
CREATE TABLE push_room (
    room         INTEGER NOT NULL REFERENCES room (id),
    -- The account of the registration.
    jid          TEXT    NOT NULL,
    registration INTEGER NOT NULL REFERENCES push_registration (id),
    -- The topic of the pushes.
    about        TEXT    NOT NULL,
    PRIMARY KEY (room, jid, registration)
) STRICT, WITHOUT ROWID;
CREATE INDEX push_room_registration ON push_room (registration);

-- In which words devices show a domain's pushes, where its administrators have said so (JSON).
ALTER TABLE domain ADD COLUMN push_templates TEXT;
