-- Rooms have a kind, and a name for each; what members have read of them; whom, and what, accounts block in MUC Light.
ALTER TABLE room
    ADD COLUMN kind smallint NOT NULL DEFAULT 0,
    -- How often the configuration or the members of a room of MUC Light have changed.
    ADD COLUMN version bigint NOT NULL DEFAULT 0,
    -- The newest message that inboxes show, and how many there were that are unread until they are read.
    ADD COLUMN last bigint NOT NULL DEFAULT 0,
    ADD COLUMN counted bigint NOT NULL DEFAULT 0,
    DROP CONSTRAINT room_domain_name_key,
    ADD UNIQUE (domain, kind, name);
DROP INDEX room_found;
CREATE INDEX room_found ON room (domain, kind, name) WHERE is_found;
UPDATE room r SET last = coalesce((SELECT max(seq) FROM room_message m WHERE m.room = r.id), 0);
ALTER TABLE room_member
    -- The newest message when it became a member.
    ADD COLUMN since bigint NOT NULL DEFAULT 0,
    -- Up to which message it has read, and how many there were until then that count; the rest as in `inbox`.
    ADD COLUMN read bigint NOT NULL DEFAULT 0,
    ADD COLUMN read_counted bigint NOT NULL DEFAULT 0,
    ADD COLUMN marked bigint NOT NULL DEFAULT 0,
    ADD COLUMN folder smallint NOT NULL DEFAULT 0,
    ADD COLUMN moved bigint NOT NULL DEFAULT 0,
    ADD COLUMN muted bigint NOT NULL DEFAULT 0;
UPDATE room_member m SET read = r.last FROM room r WHERE r.id = m.room;
-- How many messages that count there were in the room with this one.
ALTER TABLE room_message ADD COLUMN counted bigint NOT NULL DEFAULT 0;
CREATE TABLE room_block (
    account bigint  NOT NULL REFERENCES account (id),
    is_room boolean NOT NULL,
    jid     text    COLLATE "C" NOT NULL,
    PRIMARY KEY (account, is_room, jid)
);
ALTER TABLE account ADD COLUMN room_blocks bigint NOT NULL DEFAULT 0;
CREATE INDEX room_member_bin ON room_member (jid) WHERE folder = 2;
