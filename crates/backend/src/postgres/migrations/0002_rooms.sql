-- Rooms (XEP-0045), their members and their archives.
CREATE TABLE room (
    id          bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    domain      bigint  NOT NULL REFERENCES domain (id),
    name        text    COLLATE "C" NOT NULL,
    created     bigint  NOT NULL,
    title       text    NOT NULL,
    -- Whether everybody can find it.
    is_found    boolean NOT NULL,
    -- The configuration and the subject, in their binary form.
    config      bytea   NOT NULL,
    subject     bytea,
    -- What is in the archive, the time of the newest message, and up to which message it was erased.
    messages    bigint  NOT NULL DEFAULT 0,
    bytes       bigint  NOT NULL DEFAULT 0,
    archived_at bigint  NOT NULL DEFAULT 0,
    erased      bigint  NOT NULL DEFAULT 0,
    UNIQUE (domain, name)
);
CREATE INDEX room_found ON room (domain, name) WHERE is_found;
CREATE TABLE room_member (
    room        bigint   NOT NULL REFERENCES room (id),
    jid         text     COLLATE "C" NOT NULL,
    affiliation smallint NOT NULL,
    nick        text     NOT NULL,
    reason      text     NOT NULL,
    PRIMARY KEY (room, jid)
);
CREATE INDEX room_member_jid ON room_member (jid, affiliation);
-- Messages of all rooms. Those of a room that is gone, or that were erased, are swept.
CREATE TABLE room_message (
    seq      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    room     bigint NOT NULL,
    received bigint NOT NULL,
    sender   text   NOT NULL,
    stanza   bytea  NOT NULL
);
CREATE INDEX room_message_room ON room_message (room, seq);
