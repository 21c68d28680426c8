-- What accounts tell of themselves (`vcard.rs`).
CREATE TABLE vcard (
    account INTEGER PRIMARY KEY REFERENCES account (id),
    xml     BLOB    NOT NULL
) STRICT;
