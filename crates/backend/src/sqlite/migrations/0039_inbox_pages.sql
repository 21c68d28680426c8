-- Pages of an inbox by index: where a conversation is shown (`Folder`, with the newest message), and those with something unread.
ALTER TABLE inbox ADD COLUMN shown INTEGER
    GENERATED ALWAYS AS (CASE WHEN last = 0 THEN 3 WHEN last > moved THEN 0 ELSE folder END) VIRTUAL;
CREATE INDEX inbox_shown ON inbox (account, shown, last);
CREATE INDEX inbox_unread ON inbox (account, shown, last, unread) WHERE unread > 0 OR marked > 0;
