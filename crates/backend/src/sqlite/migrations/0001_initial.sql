-- The first schema.
--
-- Times are Unix milliseconds. Enumerations are the numbers of column.rs. Numbers that leave the store (domains,
-- accounts, topics, keys, offline messages) are AUTOINCREMENT: a number is never used twice, so one that was kept in
-- memory too long names nothing rather than something else. Nothing cascades: what a removal takes along is written
-- out where it is removed, and the foreign keys prove that nothing was forgotten.

-- The one row of the node.
CREATE TABLE node (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    -- Advanced by every change of topics and accounts.
    revision INTEGER NOT NULL
) STRICT;

INSERT INTO node (one, revision) VALUES (1, 0);

CREATE TABLE domain (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    name          TEXT    NOT NULL UNIQUE,
    sessions      INTEGER NOT NULL,
    registration  INTEGER NOT NULL,
    pubsub_create INTEGER NOT NULL,
    sessions_max  INTEGER NOT NULL
) STRICT;

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
    sha256_server_key BLOB,
    UNIQUE (domain, local)
) STRICT;

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
    notify_delete INTEGER NOT NULL,
    UNIQUE (domain, name)
) STRICT;

CREATE TABLE affiliation (
    topic       INTEGER NOT NULL REFERENCES topic (id),
    jid         TEXT    NOT NULL,
    affiliation INTEGER NOT NULL,
    PRIMARY KEY (topic, jid)
) STRICT, WITHOUT ROWID;

CREATE INDEX affiliation_jid ON affiliation (jid, topic, affiliation);

CREATE TABLE subscription (
    account INTEGER NOT NULL REFERENCES account (id),
    topic   INTEGER NOT NULL REFERENCES topic (id),
    since   INTEGER NOT NULL,
    PRIMARY KEY (account, topic)
) STRICT, WITHOUT ROWID;

CREATE INDEX subscription_topic ON subscription (topic, account);

-- The revision that made an item is its key: unique on the node, and the order of the items of a topic.
CREATE TABLE item (
    revision  INTEGER PRIMARY KEY,
    topic     INTEGER NOT NULL REFERENCES topic (id),
    id        TEXT    NOT NULL,
    publisher TEXT,
    published INTEGER NOT NULL,
    payload   BLOB    NOT NULL,
    UNIQUE (topic, id)
) STRICT;

-- With the revision, the rowid, as its second column.
CREATE INDEX item_topic ON item (topic);

-- Notifications that have not ended. Small and hot: one that ends moves to `trace` without its payload, and its pages
-- are used again.
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
) STRICT;

-- Delivery order: `due IS NULL` first, then as listed, then `seq`.
CREATE INDEX notification_queue ON notification (account, due, rank, accepted);
CREATE INDEX notification_collapse ON notification (account, collapse_key) WHERE collapse_key IS NOT NULL;
CREATE INDEX notification_expires ON notification (expires) WHERE expires IS NOT NULL;
CREATE INDEX notification_due ON notification (due) WHERE due IS NOT NULL;

-- Notifications that have ended. Those of a domain that is gone are never found, and are forgotten in their time.
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
) STRICT, WITHOUT ROWID;

CREATE INDEX trace_ended ON trace (ended);

CREATE TABLE offline (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    account  INTEGER NOT NULL REFERENCES account (id),
    received INTEGER NOT NULL,
    stanza   BLOB    NOT NULL
) STRICT;

-- With `seq`, the rowid, as its second column.
CREATE INDEX offline_account ON offline (account);

CREATE TABLE api_key (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    hash    BLOB    NOT NULL UNIQUE,
    name    TEXT    NOT NULL,
    domain  INTEGER REFERENCES domain (id),
    scopes  INTEGER NOT NULL,
    created INTEGER NOT NULL
) STRICT;

CREATE INDEX api_key_domain ON api_key (domain) WHERE domain IS NOT NULL;

-- Not bound to `api_key`: a key that comes from the configuration has no row there.
CREATE TABLE idempotency (
    seq             INTEGER PRIMARY KEY,
    key             INTEGER NOT NULL,
    idempotency_key TEXT    NOT NULL,
    body_hash       BLOB    NOT NULL,
    -- First and last reserved.
    since           INTEGER NOT NULL,
    reserved        INTEGER NOT NULL,
    -- Null until the response is known.
    status          INTEGER,
    response        TEXT,
    UNIQUE (key, idempotency_key)
) STRICT;

CREATE INDEX idempotency_since ON idempotency (since);
