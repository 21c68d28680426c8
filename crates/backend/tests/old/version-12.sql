-- A database as the store of version 12 of the schema wrote it, with rows in every table. Never changed.
PRAGMA application_id = 1129466958;
PRAGMA user_version = 12;
PRAGMA foreign_keys = OFF;
BEGIN TRANSACTION;
CREATE TABLE account (
    id                INTEGER PRIMARY KEY AUTOINCREMENT,
    domain            INTEGER NOT NULL REFERENCES domain (id),
    local             TEXT    NOT NULL,
    created           INTEGER NOT NULL,
    -- Since when it may not log in; null while it may.
    disabled          INTEGER,
    sha1_salt         BLOB,
    sha1_iterations   INTEGER,
    sha1_stored_key   BLOB,
    sha1_server_key   BLOB,
    sha256_salt       BLOB,
    sha256_iterations INTEGER,
    sha256_stored_key BLOB,
    sha256_server_key BLOB, revocations BLOB, generation INTEGER NOT NULL DEFAULT 0,
    UNIQUE (domain, local)
) STRICT;
INSERT INTO account VALUES (1, 1, 'alice', 1795167000000, NULL, X'01010101010101010101010101010101', 4096, X'0202020202020202020202020202020202020202', X'0303030303030303030303030303030303030303', X'04040404040404040404040404040404', 10000, X'0505050505050505050505050505050505050505050505050505050505050505', X'0606060606060606060606060606060606060606060606060606060606060606', X'00000002000000000000000900000001', 3);
INSERT INTO account VALUES (2, 1, 'bob', 1795167000001, 1795167000005, NULL, NULL, NULL, NULL, X'04040404040404040404040404040404', 10000, X'0505050505050505050505050505050505050505050505050505050505050505', X'0606060606060606060606060606060606060606060606060606060606060606', NULL, 1);
INSERT INTO account VALUES (3, 2, 'alice', 1795167000002, NULL, X'01010101010101010101010101010101', 4096, X'0202020202020202020202020202020202020202', X'0303030303030303030303030303030303030303', X'04040404040404040404040404040404', 10000, X'0505050505050505050505050505050505050505050505050505050505050505', X'0606060606060606060606060606060606060606060606060606060606060606', NULL, 0);
CREATE TABLE affiliation (
    topic       INTEGER NOT NULL REFERENCES topic (id),
    jid         TEXT    NOT NULL,
    affiliation INTEGER NOT NULL,
    PRIMARY KEY (topic, jid)
) STRICT, WITHOUT ROWID;
INSERT INTO affiliation VALUES (1, 'alice@example.org', 4);
INSERT INTO affiliation VALUES (2, 'bob@example.org', 2);
INSERT INTO affiliation VALUES (1, 'mallory@example.org', 0);
CREATE TABLE api_key (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    hash    BLOB    NOT NULL UNIQUE,
    name    TEXT    NOT NULL,
    domain  INTEGER REFERENCES domain (id),
    scopes  INTEGER NOT NULL,
    created INTEGER NOT NULL
) STRICT;
INSERT INTO api_key VALUES (1, X'0707070707070707070707070707070707070707070707070707070707070707', 'everything', NULL, 8, 1795167000000);
INSERT INTO api_key VALUES (2, X'0808080808080808080808080808080808080808080808080808080808080808', 'of a domain', 1, 1, 1795167000001);
CREATE TABLE dead_letter (
    webhook INTEGER NOT NULL REFERENCES webhook (id),
    event   INTEGER NOT NULL,
    failed  INTEGER NOT NULL,
    error   TEXT    NOT NULL,
    body    BLOB    NOT NULL,
    PRIMARY KEY (webhook, event)
) STRICT, WITHOUT ROWID;
CREATE TABLE domain (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    name          TEXT    NOT NULL UNIQUE,
    sessions      INTEGER NOT NULL,
    registration  INTEGER NOT NULL,
    pubsub_create INTEGER NOT NULL,
    sessions_max  INTEGER NOT NULL
, messages_durable INTEGER NOT NULL DEFAULT 1) STRICT;
INSERT INTO domain VALUES (1, 'example.org', 0, 1, 1, 3, 1);
INSERT INTO domain VALUES (2, 'other.example', 1, 0, 0, 20, 0);
CREATE TABLE event (
    number       INTEGER PRIMARY KEY AUTOINCREMENT,
    notification BLOB    NOT NULL,
    -- As in the trace, so that what is forgotten with it is found from the oldest on.
    ended        INTEGER NOT NULL
) STRICT;
INSERT INTO event VALUES (1, X'01A1F84A95C000030000000000000005', 1795167000007);
INSERT INTO event VALUES (2, X'01A1F84A95C000030000000000000006', 1795167000008);
CREATE TABLE idempotency (
    seq             INTEGER PRIMARY KEY,
    key             INTEGER NOT NULL,
    idempotency_key TEXT    NOT NULL,
    body_hash       BLOB    NOT NULL,
    -- First and last reserved.
    since           INTEGER NOT NULL,
    reserved        INTEGER NOT NULL,
    -- Null until the response is known.
    response BLOB,
    UNIQUE (key, idempotency_key)
) STRICT;
INSERT INTO idempotency VALUES (1, 2, 'order-1', X'0101010101010101010101010101010101010101010101010101010101010101', 1795167000000, 1795167000000, X'323032207B226964223A2022C3A9227D');
INSERT INTO idempotency VALUES (2, 2, 'lines', X'0101010101010101010101010101010101010101010101010101010101010101', 1795167000000, 1795167000000, NULL);
CREATE TABLE idempotency_line (
    key             INTEGER NOT NULL,
    idempotency_key TEXT    NOT NULL,
    block           INTEGER NOT NULL,
    digests         BLOB    NOT NULL,
    PRIMARY KEY (key, idempotency_key, block)
) STRICT, WITHOUT ROWID;
INSERT INTO idempotency_line VALUES (2, 'lines', 0, X'00000000000003E900000000000003EA');
INSERT INTO idempotency_line VALUES (2, 'lines', 1, X'00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000514');
CREATE TABLE item (
    seq  INTEGER PRIMARY KEY,
    topic     INTEGER NOT NULL REFERENCES topic (id),
    id        TEXT    NOT NULL,
    publisher TEXT,
    published INTEGER NOT NULL,
    payload   BLOB    NOT NULL, revision INTEGER NOT NULL DEFAULT 0,
    UNIQUE (topic, id)
) STRICT;
INSERT INTO item VALUES (1, 1, 'first', NULL, 1795167000003, X'3C7020786D6C6E733D2775726E3A70273E313C2F703E', 1);
INSERT INTO item VALUES (2, 1, 'second', 'bob@example.org', 1795167000004, X'3C7020786D6C6E733D2775726E3A70273E323C2F703E', 2);
CREATE TABLE node (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    -- Advanced by every change of topics and accounts.
    topic_changes INTEGER NOT NULL
) STRICT;
INSERT INTO node VALUES (1, 2);
CREATE TABLE notification (
    -- The order in which they came; settles what was accepted in the same millisecond.
    seq          INTEGER PRIMARY KEY,
    id           BLOB    NOT NULL UNIQUE,
    account      INTEGER NOT NULL REFERENCES account (id),
    -- As in `account`, so that ending one does not have to look there.
    domain       INTEGER NOT NULL,
    local        TEXT    NOT NULL,
    audience     INTEGER NOT NULL,
    -- The priority, highest first.
    rank         INTEGER NOT NULL,
    accepted     INTEGER NOT NULL,
    expires      INTEGER,
    collapse_key TEXT,
    send_at      INTEGER,
    -- `send_at` while it is scheduled, null once it waits for the device.
    due          INTEGER,
    stored       INTEGER,
    sent         INTEGER,
    xml          INTEGER NOT NULL,
    payload      BLOB    NOT NULL
, key INTEGER) STRICT;
INSERT INTO notification VALUES (1, X'01A1F84A95C000030000000000000001', 1, 1, 'alice', 2, 1, 1795167000001, NULL, NULL, NULL, NULL, 1795167000001, NULL, 0, X'7B226E223A317D', NULL);
INSERT INTO notification VALUES (2, X'01A1F84A95C000030000000000000002', 1, 1, 'alice', 2, 0, 1795167000002, 1795253400000, 'key', NULL, NULL, 1795167000002, 1795167000003, 1, X'3C7020786D6C6E733D2775726E3A70272F3E', 2);
INSERT INTO notification VALUES (3, X'01A1F84A95C000030000000000000003', 1, 1, 'alice', 2, 2, 1795167000003, NULL, NULL, 1795167060000, 1795167060000, NULL, NULL, 0, X'7B226E223A337D', NULL);
INSERT INTO notification VALUES (4, X'01A1F84A95C000030000000000000004', 2, 1, 'bob', 1, 1, 1795167000004, NULL, NULL, 1795167060000, 1795167060000, NULL, NULL, 0, X'7B226E223A347D', NULL);
INSERT INTO notification VALUES (5, X'01A1F84A95C000030000000000000007', 3, 2, 'alice', 2, 1, 1795167000020, NULL, NULL, NULL, NULL, 1795167000020, NULL, 0, X'7B226E223A377D', NULL);
INSERT INTO notification VALUES (6, X'01A1F84A95C000030000000000000008', 3, 2, 'alice', 2, 1, 1795167000010, NULL, NULL, NULL, NULL, 1795167000010, NULL, 0, X'7B226E223A387D', NULL);
CREATE TABLE offline (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    account  INTEGER NOT NULL REFERENCES account (id),
    received INTEGER NOT NULL,
    stanza   BLOB    NOT NULL
) STRICT;
INSERT INTO offline VALUES (1, 1, 1795167000009, X'3C6D65737361676520786D6C6E733D276A61626265723A636C69656E74272069643D2731273E3C626F64793E6F6E653C2F626F64793E3C2F6D6573736167653E');
INSERT INTO offline VALUES (2, 1, 1795167000010, X'3C6D65737361676520786D6C6E733D276A61626265723A636C69656E74272069643D2732273E3C626F64793E74776F3C2F626F64793E3C2F6D6573736167653E');
CREATE TABLE operation (
    id      BLOB NOT NULL PRIMARY KEY,
    -- What it was, and what it was answered (`operation.rs`).
    outcome BLOB NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO operation VALUES (X'01A1F84A95C000000000000000010000', X'090000000000000001');
INSERT INTO operation VALUES (X'01A1F84A95C000000000000000020000', X'090000000000000002');
INSERT INTO operation VALUES (X'01A1F84A95C000000000000000030000', X'090000000000000003');
INSERT INTO operation VALUES (X'01A1F84A95C0000000000000000B0000', X'0C0000000000000001000001A1F84A95C3');
INSERT INTO operation VALUES (X'01A1F84A95C0000000000000000C0000', X'0C0000000000000002000001A1F84A95C4');
CREATE TABLE run (
    -- Ascending with `first`. The first run is always there; others are removed once their traces are forgotten.
    number INTEGER PRIMARY KEY,
    first  BLOB    NOT NULL UNIQUE
) STRICT;
INSERT INTO run VALUES (0, X'00000000000000000000000000000000');
INSERT INTO run VALUES (1, X'01A1F84A95C000030000000000000006');
CREATE TABLE subscription (
    account INTEGER NOT NULL REFERENCES account (id),
    topic   INTEGER NOT NULL REFERENCES topic (id),
    since   INTEGER NOT NULL, generation INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (account, topic)
) STRICT, WITHOUT ROWID;
INSERT INTO subscription VALUES (1, 1, 1795167000000, 4);
INSERT INTO subscription VALUES (1, 2, 1795167000001, 5);
INSERT INTO subscription VALUES (2, 1, 1795167000002, 2);
CREATE TABLE topic (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    domain        INTEGER NOT NULL REFERENCES domain (id),
    name          TEXT    NOT NULL,
    created       INTEGER NOT NULL,
    -- How many items are kept, and the revision of the newest of them: so that neither publishing nor logging in
    -- counts or searches.
    items         INTEGER NOT NULL DEFAULT 0,
    last          INTEGER,
    title         TEXT    NOT NULL,
    access_model  INTEGER NOT NULL,
    publish_model INTEGER NOT NULL,
    max_items     INTEGER NOT NULL,
    persist_items INTEGER NOT NULL,
    send_last     INTEGER NOT NULL,
    notify_retract INTEGER NOT NULL,
    notify_delete INTEGER NOT NULL, revision INTEGER NOT NULL DEFAULT 0,
    UNIQUE (domain, name)
) STRICT;
INSERT INTO topic VALUES (1, 1, 'news', 1795167000000, 2, 2, 'The news', 0, 1, 10, 1, 2, 1, 0, 2);
INSERT INTO topic VALUES (2, 1, 'quiet', 1795167000001, 0, NULL, '', 1, 0, 1, 0, 0, 0, 1, 0);
CREATE TABLE trace (
    id              BLOB    PRIMARY KEY,
    domain          INTEGER NOT NULL,
    local           TEXT    NOT NULL,
    audience        INTEGER NOT NULL,
    rank            INTEGER NOT NULL,
    state           INTEGER NOT NULL,
    accepted        INTEGER NOT NULL,
    send_at         INTEGER,
    stored          INTEGER,
    sent            INTEGER,
    ended           INTEGER NOT NULL,
    acknowledged_by INTEGER,
    reason          INTEGER
, key INTEGER, expires INTEGER, collapse_key TEXT, run INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;
INSERT INTO trace VALUES (X'01A1F84A95C000030000000000000005', 1, 'alice', 2, 1, 4, 1795167000005, NULL, 1795167000005, 1795167000006, 1795167000007, 0, NULL, 2, 1795167000100, 'key', 0);
INSERT INTO trace VALUES (X'01A1F84A95C000030000000000000006', 1, 'alice', 0, 1, 8, 1795167000006, NULL, 1795167000006, NULL, 1795167000008, NULL, 1, NULL, NULL, NULL, 1);
CREATE TABLE webhook (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    -- Whose notifications; null for all.
    domain       INTEGER REFERENCES domain (id),
    url          TEXT    NOT NULL,
    -- A bit per state, by the numbers of column.rs.
    states       INTEGER NOT NULL,
    secret       BLOB    NOT NULL,
    status       INTEGER NOT NULL DEFAULT 0,
    created      INTEGER NOT NULL,
    -- The number of the last event that is dealt with.
    cursor       INTEGER NOT NULL,
    failures     INTEGER NOT NULL DEFAULT 0,
    refusals     INTEGER NOT NULL DEFAULT 0,
    is_alone     INTEGER NOT NULL DEFAULT 0,
    next_attempt INTEGER,
    failed       INTEGER,
    error        TEXT,
    -- Who sends its events, and until when nobody else does; null for nobody.
    owner        INTEGER,
    claimed      INTEGER,
    -- What is in `dead_letter`, so that nobody counts it; and what is not there any more.
    letters      INTEGER NOT NULL DEFAULT 0,
    letter_bytes INTEGER NOT NULL DEFAULT 0,
    dropped      INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX affiliation_jid ON affiliation (jid, topic, affiliation);
CREATE INDEX api_key_domain ON api_key (domain) WHERE domain IS NOT NULL;
CREATE INDEX idempotency_since ON idempotency (since);
CREATE UNIQUE INDEX item_topic ON item (topic, revision);
CREATE INDEX notification_collapse ON notification (account, collapse_key) WHERE collapse_key IS NOT NULL;
CREATE INDEX notification_due ON notification (due) WHERE due IS NOT NULL;
CREATE INDEX notification_expires ON notification (expires) WHERE expires IS NOT NULL;
CREATE INDEX notification_queue ON notification (account, due, rank);
CREATE INDEX offline_account ON offline (account);
CREATE INDEX subscription_topic ON subscription (topic, account);
CREATE INDEX trace_ended ON trace (ended);
CREATE INDEX trace_run ON trace (run, domain, local);
CREATE INDEX webhook_domain ON webhook (domain) WHERE domain IS NOT NULL;
CREATE TRIGGER idempotency_lines AFTER DELETE ON idempotency BEGIN
    DELETE FROM idempotency_line WHERE key = OLD.key AND idempotency_key = OLD.idempotency_key;
END;
CREATE TRIGGER trace_event AFTER INSERT ON trace BEGIN
    INSERT INTO event (notification, ended) VALUES (NEW.id, NEW.ended);
END;
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES ('domain', 2);
INSERT INTO sqlite_sequence VALUES ('api_key', 2);
INSERT INTO sqlite_sequence VALUES ('account', 3);
INSERT INTO sqlite_sequence VALUES ('offline', 2);
INSERT INTO sqlite_sequence VALUES ('topic', 2);
INSERT INTO sqlite_sequence VALUES ('event', 2);
COMMIT;
