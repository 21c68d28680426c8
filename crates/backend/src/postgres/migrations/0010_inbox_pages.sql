-- Pages of an inbox by index: where a conversation is shown (`Folder`, with the newest message), and those with something unread.
ALTER TABLE inbox ADD COLUMN shown smallint
    GENERATED ALWAYS AS (CASE WHEN last = 0 THEN 3::smallint WHEN last > moved THEN 0::smallint ELSE folder END) STORED;
DROP INDEX inbox_last;
CREATE INDEX inbox_shown ON inbox (account, shown, last);
CREATE INDEX inbox_unread ON inbox (account, shown, last) INCLUDE (unread) WHERE unread > 0 OR marked > 0;
-- So that of an account's rooms the first can be found.
DROP INDEX room_member_jid;
CREATE INDEX room_member_jid ON room_member (jid, affiliation, room);
