-- The privacy lists of an account (`blocking.rs`), in the form of `PrivacyLists`.
CREATE TABLE privacy (
    account bigint NOT NULL PRIMARY KEY REFERENCES account (id),
    lists   bytea  NOT NULL
);
