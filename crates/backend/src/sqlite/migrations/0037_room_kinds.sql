-- Rooms have a kind, and a name for each; what members have read of them.

CREATE TABLE room_of_kind (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    domain       INTEGER NOT NULL REFERENCES domain (id),
    kind         INTEGER NOT NULL,
    name         TEXT    NOT NULL,
    created      INTEGER NOT NULL,
    title        TEXT    NOT NULL,
    -- Whether everybody can find it.
    is_found     INTEGER NOT NULL,
    -- The configuration and the subject, in their binary form.
    config       BLOB    NOT NULL,
    subject      BLOB,
    -- How often the configuration or the members of a room of MUC Light have changed.
    version      INTEGER NOT NULL DEFAULT 0,
    -- What is in the archive, the time of the newest message, and up to which message it was erased.
    messages     INTEGER NOT NULL DEFAULT 0,
    bytes        INTEGER NOT NULL DEFAULT 0,
    archived_at  INTEGER NOT NULL DEFAULT 0,
    erased       INTEGER NOT NULL DEFAULT 0,
    -- The newest message that inboxes show, and how many there were that are unread until they are read.
    last         INTEGER NOT NULL DEFAULT 0,
    counted      INTEGER NOT NULL DEFAULT 0,
    UNIQUE (domain, kind, name)
) STRICT;

INSERT INTO room_of_kind (id, domain, kind, name, created, title, is_found, config, subject, messages, bytes, archived_at, erased, last)
    SELECT id, domain, 0, name, created, title, is_found, config, subject, messages, bytes, archived_at, erased,
        coalesce((SELECT max(seq) FROM room_message m WHERE m.room = r.id), 0)
    FROM room r;

-- The number of a room that is gone is not given to another: its messages may still be there.
DELETE FROM sqlite_sequence WHERE name = 'room_of_kind';
INSERT INTO sqlite_sequence (name, seq) SELECT 'room_of_kind', seq FROM sqlite_sequence WHERE name = 'room';

CREATE TABLE member_of_room (
    room         INTEGER NOT NULL REFERENCES room_of_kind (id),
    jid          TEXT    NOT NULL,
    affiliation  INTEGER NOT NULL,
    nick         TEXT    NOT NULL,
    reason       TEXT    NOT NULL,
    -- The newest message when it became a member.
    since        INTEGER NOT NULL DEFAULT 0,
    -- Up to which message it has read, and how many there were until then that count; the rest as in `inbox`.
    read         INTEGER NOT NULL DEFAULT 0,
    read_counted INTEGER NOT NULL DEFAULT 0,
    marked       INTEGER NOT NULL DEFAULT 0,
    folder       INTEGER NOT NULL DEFAULT 0,
    moved        INTEGER NOT NULL DEFAULT 0,
    muted        INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (room, jid)
) STRICT, WITHOUT ROWID;

INSERT INTO member_of_room (room, jid, affiliation, nick, reason, read)
    SELECT m.room, m.jid, m.affiliation, m.nick, m.reason, r.last FROM room_member m JOIN room_of_kind r ON r.id = m.room;

DROP TABLE room_member;
DROP TABLE room;
ALTER TABLE room_of_kind RENAME TO room;
ALTER TABLE member_of_room RENAME TO room_member;
CREATE INDEX room_found ON room (domain, kind, name) WHERE is_found;
CREATE INDEX room_member_jid ON room_member (jid, affiliation);

-- How many messages that count there were in the room with this one.
ALTER TABLE room_message ADD COLUMN counted INTEGER NOT NULL DEFAULT 0;
