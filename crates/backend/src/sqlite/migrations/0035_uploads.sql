-- Files that clients upload (XEP-0363, `upload.rs`), and the slots for them. What is in them is in files of their own, by the id and the attempt.
CREATE TABLE upload (
    id         BLOB    NOT NULL PRIMARY KEY,
    domain     INTEGER NOT NULL REFERENCES domain (id),
    account    INTEGER NOT NULL REFERENCES account (id),
    name       TEXT    NOT NULL,
    media_type TEXT    NOT NULL,
    bytes      INTEGER NOT NULL,
    expires    INTEGER NOT NULL,
    -- The attempt that uploaded it; none of a slot.
    attempt    INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX upload_account_expires ON upload (account, expires);
CREATE INDEX upload_expires ON upload (expires);

-- What the contents of these attempts take is given back at that time. An attempt is here while it is under way, so that nothing is left of one
-- that does not end.
CREATE TABLE removable_upload (
    id        BLOB    NOT NULL,
    attempt   INTEGER NOT NULL,
    remove_at INTEGER NOT NULL,
    PRIMARY KEY (id, attempt)
) STRICT, WITHOUT ROWID;
CREATE INDEX removable_upload_at ON removable_upload (remove_at);

-- Bytes of files and slots, 4096 for each beside its own (`FILE_COST`), so that no write has to count them.
CREATE TABLE upload_account (
    account INTEGER NOT NULL PRIMARY KEY REFERENCES account (id),
    bytes   INTEGER NOT NULL
) STRICT;
CREATE TABLE upload_domain (
    domain INTEGER NOT NULL PRIMARY KEY REFERENCES domain (id),
    bytes  INTEGER NOT NULL
) STRICT;

CREATE TRIGGER upload_made AFTER INSERT ON upload BEGIN
    INSERT INTO upload_account (account, bytes) VALUES (NEW.account, NEW.bytes + 4096)
        ON CONFLICT (account) DO UPDATE SET bytes = bytes + excluded.bytes;
    INSERT INTO upload_domain (domain, bytes) VALUES (NEW.domain, NEW.bytes + 4096)
        ON CONFLICT (domain) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER upload_gone AFTER DELETE ON upload BEGIN
    UPDATE upload_account SET bytes = bytes - OLD.bytes - 4096 WHERE account = OLD.account;
    DELETE FROM upload_account WHERE account = OLD.account AND bytes <= 0;
    UPDATE upload_domain SET bytes = bytes - OLD.bytes - 4096 WHERE domain = OLD.domain;
    DELETE FROM upload_domain WHERE domain = OLD.domain AND bytes <= 0;
    INSERT OR IGNORE INTO removable_upload (id, attempt, remove_at) SELECT OLD.id, OLD.attempt, 0 WHERE OLD.attempt IS NOT NULL;
END;
