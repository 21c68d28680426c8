-- Where pushes for accounts go (XEP-0357).
CREATE TABLE push_registration (
    id         bigint   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account    bigint   NOT NULL REFERENCES account (id),
    name       text     NOT NULL,
    -- How they get there, by the numbers of rows/push.rs.
    kind       smallint NOT NULL,
    url        text     NOT NULL,
    public_key bytea    NOT NULL,
    secret     bytea    NOT NULL,
    shown      smallint NOT NULL,
    created    bigint   NOT NULL,
    pushed     bigint,
    failures   bigint   NOT NULL DEFAULT 0,
    failed     bigint,
    error      text,
    UNIQUE (account, name)
);

-- What is to be pushed: the newest of what waits under a topic.
CREATE TABLE push (
    id           bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    registration bigint  NOT NULL REFERENCES push_registration (id),
    about        text    NOT NULL,
    version      bigint  NOT NULL DEFAULT 1,
    -- What it tells: a row of `offline`, or one of `notification`.
    message      bigint,
    notification uuid,
    -- When it is tried. Of one that is claimed, when the claim ends.
    due          bigint  NOT NULL,
    owner        bigint,
    -- The node whose claim it is.
    claimed_by   text,
    has_failed   boolean NOT NULL DEFAULT false,
    UNIQUE (registration, about)
);
CREATE INDEX push_due ON push (due);
CREATE INDEX push_owner ON push (owner) WHERE owner IS NOT NULL;

-- How many registrations an account has, so that no write of what is stored has to look for them.
ALTER TABLE account ADD COLUMN registrations bigint NOT NULL DEFAULT 0;
CREATE FUNCTION push_registration_made() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE account SET registrations = registrations + 1 WHERE id = NEW.account;
    RETURN NULL;
END
$$;
CREATE FUNCTION push_registration_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE account SET registrations = registrations - 1 WHERE id = OLD.account;
    RETURN NULL;
END
$$;
CREATE TRIGGER push_registration_made AFTER INSERT ON push_registration FOR EACH ROW EXECUTE FUNCTION push_registration_made();
CREATE TRIGGER push_registration_gone AFTER DELETE ON push_registration FOR EACH ROW EXECUTE FUNCTION push_registration_gone();
