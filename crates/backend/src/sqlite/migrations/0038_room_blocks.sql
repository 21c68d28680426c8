-- Whom, and what, accounts block in MUC Light.
CREATE TABLE room_block (
    account INTEGER NOT NULL REFERENCES account (id),
    is_room INTEGER NOT NULL,
    jid     TEXT    NOT NULL,
    PRIMARY KEY (account, is_room, jid)
) STRICT, WITHOUT ROWID;
-- How many they are.
ALTER TABLE account ADD COLUMN room_blocks INTEGER NOT NULL DEFAULT 0;

-- The rooms in somebody's bin.
CREATE INDEX room_member_bin ON room_member (jid) WHERE folder = 2;
