-- Rooms (XEP-0045), their members and their archives.

CREATE TABLE room (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    domain       INTEGER NOT NULL REFERENCES domain (id),
    name         TEXT    NOT NULL,
    created      INTEGER NOT NULL,
    title        TEXT    NOT NULL,
    -- Whether everybody can find it.
    is_found     INTEGER NOT NULL,
    -- The configuration and the subject, in their binary form.
    config       BLOB    NOT NULL,
    subject      BLOB,
    -- What is in the archive, the time of the newest message, and up to which message it was erased.
    messages     INTEGER NOT NULL DEFAULT 0,
    bytes        INTEGER NOT NULL DEFAULT 0,
    archived_at  INTEGER NOT NULL DEFAULT 0,
    erased       INTEGER NOT NULL DEFAULT 0,
    UNIQUE (domain, name)
) STRICT;

CREATE INDEX room_found ON room (domain, name) WHERE is_found;

CREATE TABLE room_member (
    room        INTEGER NOT NULL REFERENCES room (id),
    jid         TEXT    NOT NULL,
    affiliation INTEGER NOT NULL,
    nick        TEXT    NOT NULL,
    reason      TEXT    NOT NULL,
    PRIMARY KEY (room, jid)
) STRICT, WITHOUT ROWID;

CREATE INDEX room_member_jid ON room_member (jid, affiliation);

-- Messages of all rooms in the order in which they were kept. Those of a room that is gone, or that were erased, are swept.
CREATE TABLE room_message (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    room     INTEGER NOT NULL,
    received INTEGER NOT NULL,
    sender   TEXT    NOT NULL,
    stanza   BLOB    NOT NULL
) STRICT;

CREATE INDEX room_message_room ON room_message (room, seq);
