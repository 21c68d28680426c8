-- Entries of messages that have not entered `archive_entry`, many per row, so that a start need not read those messages (`archive/list.rs`):
-- up to the message `last`.
CREATE TABLE archive_list (
    last    INTEGER PRIMARY KEY,
    entries BLOB    NOT NULL
) STRICT;
