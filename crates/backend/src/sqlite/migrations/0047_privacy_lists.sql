-- The privacy lists of an account (`blocking.rs`), in the form of `PrivacyLists`.
CREATE TABLE privacy (
    account INTEGER NOT NULL PRIMARY KEY REFERENCES account (id),
    lists   BLOB    NOT NULL
) STRICT;
