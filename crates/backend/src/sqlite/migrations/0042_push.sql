-- Where pushes for accounts go (XEP-0357, `push.rs`).
CREATE TABLE push_registration (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    account    INTEGER NOT NULL REFERENCES account (id),
    name       TEXT    NOT NULL,
    -- How they get there, by the numbers of rows/push.rs.
    kind       INTEGER NOT NULL,
    url        TEXT    NOT NULL,
    public_key BLOB    NOT NULL,
    secret     BLOB    NOT NULL,
    shown      INTEGER NOT NULL,
    created    INTEGER NOT NULL,
    pushed     INTEGER,
    failures   INTEGER NOT NULL DEFAULT 0,
    failed     INTEGER,
    error      TEXT,
    UNIQUE (account, name)
) STRICT;

-- What is to be pushed: the newest of what waits under a topic.
CREATE TABLE push (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    registration INTEGER NOT NULL REFERENCES push_registration (id),
    about        TEXT    NOT NULL,
    version      INTEGER NOT NULL DEFAULT 1,
    -- What it tells: a row of `offline`, or one of `notification`.
    message      INTEGER,
    notification BLOB,
    -- When it is tried. Of one that is claimed, when the claim ends.
    due          INTEGER NOT NULL,
    owner        INTEGER,
    has_failed   INTEGER NOT NULL DEFAULT 0,
    UNIQUE (registration, about)
) STRICT;
CREATE INDEX push_due ON push (due);
CREATE INDEX push_owner ON push (owner) WHERE owner IS NOT NULL;

-- How many registrations an account has, so that no write of what is stored has to look for them.
ALTER TABLE account ADD COLUMN registrations INTEGER NOT NULL DEFAULT 0;
CREATE TRIGGER push_registration_made AFTER INSERT ON push_registration BEGIN
    UPDATE account SET registrations = registrations + 1 WHERE id = NEW.account;
END;
CREATE TRIGGER push_registration_gone AFTER DELETE ON push_registration BEGIN
    UPDATE account SET registrations = registrations - 1 WHERE id = OLD.account;
END;
