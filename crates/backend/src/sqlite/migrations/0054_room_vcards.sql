-- What rooms tell of themselves (XEP-0054), and the SHA-1 of each photo in it. A table of its own: a row of `room` is written anew with each message.
CREATE TABLE room_vcard (
    room   INTEGER PRIMARY KEY REFERENCES room (id),
    photos BLOB    NOT NULL,
    xml    BLOB    NOT NULL
) STRICT;

-- Days for which archives of rooms keep a message; 0 for as long as other archives of the domain.
ALTER TABLE domain ADD COLUMN room_archive_days INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domain_grant ADD COLUMN room_archive_days INTEGER NOT NULL DEFAULT 0;
