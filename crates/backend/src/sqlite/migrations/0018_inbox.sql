-- Whether a message has contents of its own (1); 2 where that was not noted: then it counts as read.
ALTER TABLE archive_message ADD COLUMN contents INTEGER NOT NULL DEFAULT 2;

-- What a message is to its conversation: 0 nothing, 1 received, 2 sent, or of before this was noted.
ALTER TABLE archive_conversation ADD COLUMN kind INTEGER NOT NULL DEFAULT 2;

-- How conversations stand (`Conversation`), as far as their messages are in `archive_conversation`: `archive/inbox.rs`. What clients have changed is
-- here at once.
CREATE TABLE inbox (
    account INTEGER NOT NULL,
    peer    INTEGER NOT NULL,
    last    INTEGER NOT NULL DEFAULT 0,
    read    INTEGER NOT NULL DEFAULT 0,
    unread  INTEGER NOT NULL DEFAULT 0,
    marked  INTEGER NOT NULL DEFAULT 0,
    folder  INTEGER NOT NULL DEFAULT 0,
    moved   INTEGER NOT NULL DEFAULT 0,
    muted   INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (account, peer)
) STRICT, WITHOUT ROWID;
INSERT INTO inbox (account, peer, last, read)
    SELECT account, peer, max(seq), max(seq) FROM archive_conversation GROUP BY account, peer;
