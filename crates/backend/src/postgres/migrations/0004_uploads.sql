-- Files that clients upload (XEP-0363), and the slots for them. What is in them is in files of their own, by the id and the attempt.
CREATE TABLE upload (
    id         uuid   PRIMARY KEY,
    domain     bigint NOT NULL REFERENCES domain (id),
    account    bigint NOT NULL REFERENCES account (id),
    name       text   NOT NULL,
    media_type text   NOT NULL,
    bytes      bigint NOT NULL,
    expires    bigint NOT NULL,
    -- The attempt that uploaded it; none of a slot.
    attempt    bigint
);
CREATE INDEX upload_account_expires ON upload (account, expires);
CREATE INDEX upload_expires ON upload (expires);
-- What the contents of these attempts take is given back at that time. An attempt is here while it is under way, so that nothing is left of one
-- that does not end.
CREATE TABLE removable_upload (
    id        uuid   NOT NULL,
    attempt   bigint NOT NULL,
    remove_at bigint NOT NULL,
    PRIMARY KEY (id, attempt)
);
CREATE INDEX removable_upload_at ON removable_upload (remove_at);
-- Bytes of files and slots, 4096 for each beside its own (`FILE_COST`), so that no write has to count them.
CREATE TABLE upload_account (
    account bigint PRIMARY KEY REFERENCES account (id),
    bytes   bigint NOT NULL
);
CREATE TABLE upload_domain (
    domain bigint PRIMARY KEY REFERENCES domain (id),
    bytes  bigint NOT NULL
);
CREATE FUNCTION upload_made() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO upload_account (account, bytes) VALUES (NEW.account, NEW.bytes + 4096)
        ON CONFLICT (account) DO UPDATE SET bytes = upload_account.bytes + excluded.bytes;
    INSERT INTO upload_domain (domain, bytes) VALUES (NEW.domain, NEW.bytes + 4096)
        ON CONFLICT (domain) DO UPDATE SET bytes = upload_domain.bytes + excluded.bytes;
    RETURN NULL;
END
$$;
CREATE FUNCTION upload_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE upload_account SET bytes = bytes - OLD.bytes - 4096 WHERE account = OLD.account;
    DELETE FROM upload_account WHERE account = OLD.account AND bytes <= 0;
    UPDATE upload_domain SET bytes = bytes - OLD.bytes - 4096 WHERE domain = OLD.domain;
    DELETE FROM upload_domain WHERE domain = OLD.domain AND bytes <= 0;
    IF OLD.attempt IS NOT NULL THEN
        INSERT INTO removable_upload (id, attempt, remove_at) VALUES (OLD.id, OLD.attempt, 0) ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER upload_made AFTER INSERT ON upload FOR EACH ROW EXECUTE FUNCTION upload_made();
CREATE TRIGGER upload_gone AFTER DELETE ON upload FOR EACH ROW EXECUTE FUNCTION upload_gone();
