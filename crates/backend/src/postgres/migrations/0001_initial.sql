-- The first schema on PostgreSQL: what SQLite has after its migration 31, with what a database that several processes write to needs.
--
-- Times are Unix milliseconds. Enumerations are the numbers of rows/code.rs. Names are compared by their bytes. Numbers that leave the store
-- come from sequences: a number is never used twice. Nothing cascades: what a removal takes along is written out where it is removed, and
-- the foreign keys prove that nothing was forgotten.

-- Which versions of the server may read and write this schema: those that know it up to these numbers, or further.
CREATE TABLE schema (
    one        boolean PRIMARY KEY DEFAULT true CHECK (one),
    version    integer NOT NULL,
    min_reader integer NOT NULL,
    min_writer integer NOT NULL
);
INSERT INTO schema (version, min_reader, min_writer) VALUES (1, 1, 1);

-- Processes that write. An epoch is one process of a node; of a node only the newest may write.
CREATE TABLE node (
    name  text   COLLATE "C" PRIMARY KEY,
    epoch bigint NOT NULL
);

-- Connections that write, one row each: how many groups it has committed. A group and its number are committed together, so that what became of a
-- COMMIT without an answer can be read here.
CREATE TABLE lane (
    node   text    COLLATE "C" NOT NULL,
    epoch  bigint  NOT NULL,
    lane   integer NOT NULL,
    n      bigint  NOT NULL DEFAULT 0,
    buried boolean NOT NULL DEFAULT false,
    PRIMARY KEY (node, epoch, lane)
) WITH (fillfactor = 10);

-- The next group of a lane, unless its process is buried (CA001) or another group is due (CA002).
CREATE FUNCTION lane_step(a_node text, an_epoch bigint, a_lane integer, a_number bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE lane SET n = a_number
    WHERE node = a_node AND epoch = an_epoch AND lane = a_lane AND n = a_number - 1 AND NOT buried;
    IF NOT FOUND THEN
        IF EXISTS (SELECT 1 FROM lane WHERE node = a_node AND epoch = an_epoch AND lane = a_lane AND NOT buried) THEN
            RAISE EXCEPTION 'the lane stands at another number' USING ERRCODE = 'CA002';
        END IF;
        RAISE EXCEPTION 'another process of this node has taken over' USING ERRCODE = 'CA001';
    END IF;
END $$;

-- Takes the locks of a group, until its transaction ends, in one order for all: named keys, and those of accounts, by their names or by
-- notifications that wait for them. To be called in a statement of its own: what is read beside a lock is as old as before the wait for it.
CREATE FUNCTION lock_keys(keys bigint[], exclusive boolean[], domains bigint[], locals text[], notifications uuid[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    wanted record;
BEGIN
    FOR wanted IN
        SELECT key, bool_or(alone) AS alone FROM (
            SELECT key, alone FROM unnest(keys, exclusive) AS named (key, alone)
            UNION ALL
            SELECT hashtextextended(local, domain), true FROM unnest(domains, locals) AS account (domain, local)
            UNION ALL
            SELECT hashtextextended(n.local, n.domain), true FROM notification n WHERE n.id = ANY (notifications)
        ) AS wanted GROUP BY key ORDER BY key
    LOOP
        IF wanted.alone THEN
            PERFORM pg_advisory_xact_lock(wanted.key);
        ELSE
            PERFORM pg_advisory_xact_lock_shared(wanted.key);
        END IF;
    END LOOP;
END $$;

CREATE TABLE domain (
    id                   bigint   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name                 text     COLLATE "C" NOT NULL UNIQUE,
    sessions             smallint NOT NULL,
    registration         boolean  NOT NULL,
    pubsub_create        smallint NOT NULL,
    sessions_max         bigint   NOT NULL,
    messages_durable     boolean  NOT NULL,
    resumption_ms_max    bigint   NOT NULL,
    archive              boolean  NOT NULL,
    archive_days         bigint   NOT NULL,
    archive_messages_max bigint   NOT NULL,
    archive_bytes_max    bigint   NOT NULL,
    keys_max             bigint   NOT NULL,
    account_management   boolean  NOT NULL
);

-- What the operator grants a domain, within which its own administrators choose the policy.
CREATE TABLE domain_grant (
    domain               bigint   PRIMARY KEY REFERENCES domain (id),
    sessions             smallint NOT NULL,
    registration         boolean  NOT NULL,
    pubsub_create        smallint NOT NULL,
    sessions_max         bigint   NOT NULL,
    messages_durable     boolean  NOT NULL,
    resumption_ms_max    bigint   NOT NULL,
    archive              boolean  NOT NULL,
    archive_days         bigint   NOT NULL,
    archive_messages_max bigint   NOT NULL,
    archive_bytes_max    bigint   NOT NULL,
    keys_max             bigint   NOT NULL,
    account_management   boolean  NOT NULL
);

-- Names of accounts that were removed, and until when nobody registers them in-band.
CREATE TABLE held_name (
    domain bigint NOT NULL REFERENCES domain (id),
    local  text   COLLATE "C" NOT NULL,
    until  bigint NOT NULL,
    PRIMARY KEY (domain, local)
);
CREATE INDEX held_name_until ON held_name (until);

CREATE TABLE account (
    id                bigint   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    domain            bigint   NOT NULL REFERENCES domain (id),
    local             text     COLLATE "C" NOT NULL,
    created           bigint   NOT NULL,
    -- Since when it may not log in; null while it may.
    disabled          bigint,
    sha1_salt         bytea,
    sha1_iterations   bigint,
    sha1_stored_key   bytea,
    sha1_server_key   bytea,
    sha256_salt       bytea,
    sha256_iterations bigint,
    sha256_stored_key bytea,
    sha256_server_key bytea,
    -- Tokens that were taken back (XEP-0484): the counts of `carillon_core::model::Revocations`; null for none.
    revocations       bytea,
    -- The generation of an account is the highest of its row and of its subscriptions.
    generation        bigint   NOT NULL DEFAULT 0,
    -- The generation of its record, 0 while there was never anything in it; the one that last changed its roster; and how much that holds:
    -- contacts that are listed, those that are not, bytes.
    record            bigint   NOT NULL DEFAULT 0,
    roster            bigint   NOT NULL DEFAULT 0,
    contacts          bigint   NOT NULL DEFAULT 0,
    requests          bigint   NOT NULL DEFAULT 0,
    roster_bytes      bigint   NOT NULL DEFAULT 0,
    -- What it wants in its archive: `ArchiveDefault`, and 8 where it has rules.
    archive           bigint   NOT NULL DEFAULT 0,
    -- What a write would else have to count.
    private_bytes     bigint   NOT NULL DEFAULT 0,
    blocked           bigint   NOT NULL DEFAULT 0,
    blocked_bytes     bigint   NOT NULL DEFAULT 0,
    nodes             bigint   NOT NULL DEFAULT 0,
    node_bytes        bigint   NOT NULL DEFAULT 0,
    offline           bigint   NOT NULL DEFAULT 0,
    offline_bytes     bigint   NOT NULL DEFAULT 0,
    UNIQUE (domain, local)
);

CREATE TABLE topic (
    id               bigint   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    domain           bigint   NOT NULL REFERENCES domain (id),
    name             text     COLLATE "C" NOT NULL,
    created          bigint   NOT NULL,
    revision         bigint   NOT NULL DEFAULT 0,
    -- How many items are kept, their bytes, and the revision of the newest of them.
    items            bigint   NOT NULL DEFAULT 0,
    bytes            bigint   NOT NULL DEFAULT 0,
    last             bigint,
    title            text     NOT NULL,
    access_model     smallint NOT NULL,
    publish_model    smallint NOT NULL,
    max_items        bigint   NOT NULL,
    persist_items    boolean  NOT NULL,
    send_last        smallint NOT NULL,
    notify_retract   boolean  NOT NULL,
    notify_delete    boolean  NOT NULL,
    deliver_payloads boolean  NOT NULL,
    UNIQUE (domain, name)
);

CREATE TABLE affiliation (
    topic       bigint   NOT NULL REFERENCES topic (id),
    jid         text     COLLATE "C" NOT NULL,
    affiliation smallint NOT NULL,
    PRIMARY KEY (topic, jid)
);
CREATE INDEX affiliation_jid ON affiliation (jid, topic);

CREATE TABLE subscription (
    account    bigint NOT NULL REFERENCES account (id),
    topic      bigint NOT NULL REFERENCES topic (id),
    since      bigint NOT NULL,
    generation bigint NOT NULL,
    PRIMARY KEY (account, topic)
);
CREATE INDEX subscription_topic ON subscription (topic, account);

CREATE TABLE item (
    topic     bigint NOT NULL REFERENCES topic (id),
    revision  bigint NOT NULL,
    id        text   COLLATE "C" NOT NULL,
    publisher text   COLLATE "C",
    published bigint NOT NULL,
    payload   bytea  NOT NULL,
    PRIMARY KEY (topic, revision),
    UNIQUE (topic, id)
);

-- Notifications that have not ended. One that ends moves to `trace` without its payload.
CREATE TABLE notification (
    id           uuid     PRIMARY KEY,
    -- The order in which they began to wait: given behind the lock of the account.
    seq          bigint   GENERATED BY DEFAULT AS IDENTITY NOT NULL,
    account      bigint   NOT NULL REFERENCES account (id),
    -- As in `account`, so that ending one does not have to look there.
    domain       bigint   NOT NULL,
    local        text     COLLATE "C" NOT NULL,
    audience     smallint NOT NULL,
    -- The priority, highest first.
    rank         smallint NOT NULL,
    accepted     bigint   NOT NULL,
    expires      bigint,
    collapse_key text     COLLATE "C",
    send_at      bigint,
    -- `send_at` while it is scheduled, null once it waits for the device.
    due          bigint,
    stored       bigint,
    sent         bigint,
    xml          boolean  NOT NULL,
    payload      bytea    NOT NULL,
    key          bigint
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX notification_queue ON notification (account, rank, seq) WHERE due IS NULL;
CREATE INDEX notification_account ON notification (account, rank DESC, seq);
CREATE INDEX notification_collapse ON notification (account, collapse_key) WHERE collapse_key IS NOT NULL;
CREATE INDEX notification_expires ON notification (expires) WHERE expires IS NOT NULL;
CREATE INDEX notification_due ON notification (due, seq) WHERE due IS NOT NULL;

-- Notifications that have ended. Those of a domain that is gone are never found, and are forgotten in their time.
CREATE TABLE trace (
    id              uuid     PRIMARY KEY,
    domain          bigint   NOT NULL,
    local           text     COLLATE "C" NOT NULL,
    audience        smallint NOT NULL,
    rank            smallint NOT NULL,
    state           smallint NOT NULL,
    accepted        bigint   NOT NULL,
    send_at         bigint,
    stored          bigint,
    sent            bigint,
    ended           bigint   NOT NULL,
    acknowledged_by smallint,
    reason          smallint,
    expires         bigint,
    collapse_key    text     COLLATE "C",
    key             bigint,
    -- When its link was followed first, and with what.
    opened          bigint,
    agent           smallint
);
CREATE INDEX trace_ended ON trace (ended);
CREATE INDEX trace_account ON trace (domain, local, id);

-- What is told to others of notifications: that they ended, or that their links were followed. Whoever commits events holds the row of
-- `event_number` until then, so that they become visible in the order of their numbers.
CREATE TABLE event (
    number       bigint  PRIMARY KEY,
    notification uuid    NOT NULL,
    ended        bigint  NOT NULL,
    opened       boolean NOT NULL
);
CREATE TABLE event_number (
    one    boolean PRIMARY KEY DEFAULT true CHECK (one),
    newest bigint  NOT NULL
) WITH (fillfactor = 10);
INSERT INTO event_number (newest) VALUES (0);

CREATE TABLE offline (
    seq      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account  bigint NOT NULL REFERENCES account (id),
    received bigint NOT NULL,
    stanza   bytea  NOT NULL
);
CREATE INDEX offline_account ON offline (account, seq);

CREATE TABLE api_key (
    id         bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash       bytea   NOT NULL UNIQUE,
    name       text    NOT NULL,
    domain     bigint  REFERENCES domain (id),
    scopes     bigint  NOT NULL,
    created    bigint  NOT NULL,
    -- Until when the key counts; null for ever.
    expires    bigint,
    -- What is kept for its idempotency keys, in bytes.
    kept_bytes bigint  NOT NULL DEFAULT 0
);
CREATE INDEX api_key_domain ON api_key (domain);

-- Not bound to `api_key`: a key that comes from the configuration has no row there.
CREATE TABLE idempotency (
    key             bigint NOT NULL,
    idempotency_key text   COLLATE "C" NOT NULL,
    body_hash       bytea  NOT NULL,
    -- First and last reserved, and by which process: one whose process is gone is not waited for.
    since           bigint NOT NULL,
    reserved        bigint NOT NULL,
    node            text   COLLATE "C" NOT NULL,
    epoch           bigint NOT NULL,
    response        bytea,
    PRIMARY KEY (key, idempotency_key)
);
CREATE INDEX idempotency_since ON idempotency (since);

-- Lines of batches that may be sent again under their idempotency keys: a digest of what was under each number first, eight bytes each, in
-- blocks of lines.
CREATE TABLE idempotency_line (
    key             bigint NOT NULL,
    idempotency_key text   COLLATE "C" NOT NULL,
    block           bigint NOT NULL,
    digests         bytea  NOT NULL,
    PRIMARY KEY (key, idempotency_key, block),
    FOREIGN KEY (key, idempotency_key) REFERENCES idempotency (key, idempotency_key)
);

-- Writes that were done and may be asked again, by the id of their operation, which begins with the time.
CREATE TABLE operation (
    id      uuid  PRIMARY KEY,
    outcome bytea NOT NULL
);

-- URLs that are told how notifications ended: each is a place among the events.
CREATE TABLE webhook (
    id           bigint   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    domain       bigint   REFERENCES domain (id),
    url          text     NOT NULL,
    -- A bit per state, by the numbers of rows/code.rs.
    states       bigint   NOT NULL,
    secret       bytea    NOT NULL,
    status       smallint NOT NULL DEFAULT 0,
    created      bigint   NOT NULL,
    -- The number of the last event that is dealt with.
    cursor       bigint   NOT NULL,
    failures     bigint   NOT NULL DEFAULT 0,
    refusals     bigint   NOT NULL DEFAULT 0,
    is_alone     boolean  NOT NULL DEFAULT false,
    next_attempt bigint,
    failed       bigint,
    error        text,
    -- Who sends its events, of which process, and until when nobody else does; null for nobody.
    owner        bigint,
    claimed      bigint,
    node         text     COLLATE "C",
    -- What is in `dead_letter`, and what is not there any more.
    letters      bigint   NOT NULL DEFAULT 0,
    letter_bytes bigint   NOT NULL DEFAULT 0,
    dropped      bigint   NOT NULL DEFAULT 0
);
CREATE INDEX webhook_domain ON webhook (domain);

-- Events that receivers did not take.
CREATE TABLE dead_letter (
    webhook bigint NOT NULL REFERENCES webhook (id),
    event   bigint NOT NULL,
    failed  bigint NOT NULL,
    error   text   NOT NULL,
    body    bytea  NOT NULL,
    PRIMARY KEY (webhook, event)
);

-- Sessions that wait for the next process of a node.
CREATE TABLE parked (
    node     text   COLLATE "C" NOT NULL,
    number   bigint NOT NULL,
    shard    bigint NOT NULL,
    shards   bigint NOT NULL,
    sessions bigint NOT NULL,
    written  bigint NOT NULL,
    bytes    bytea  NOT NULL,
    PRIMARY KEY (node, number)
);

-- That one of several holders has something to itself until a time.
CREATE TABLE lease (
    name   text   COLLATE "C" PRIMARY KEY,
    holder text   NOT NULL,
    until  bigint NOT NULL
);
CREATE INDEX lease_until ON lease (until);

-- What an account's roster says of a contact. `standing`: the bits of `Standing::bits`; `groups`: in the form of `core::form`; `request`: what came
-- with the contact's request for a subscription, while that is not answered; `asked`: of one that is not listed, the generation at which it asked.
CREATE TABLE contact (
    account  bigint   NOT NULL REFERENCES account (id),
    jid      text     COLLATE "C" NOT NULL,
    name     text     NOT NULL,
    groups   bytea,
    standing bigint   NOT NULL,
    listed   boolean  NOT NULL,
    request  bytea,
    asked    bigint,
    PRIMARY KEY (account, jid)
);
CREATE INDEX contact_ahead ON contact (jid) WHERE standing & 20 <> 0;
CREATE INDEX contact_asked ON contact (account, asked) WHERE NOT listed;

CREATE TABLE blocked (
    account bigint NOT NULL REFERENCES account (id),
    jid     text   COLLATE "C" NOT NULL,
    PRIMARY KEY (account, jid)
);

-- What clients keep for themselves, by the namespace and the name of the element.
CREATE TABLE private (
    account bigint NOT NULL REFERENCES account (id),
    ns      text   COLLATE "C" NOT NULL,
    name    text   COLLATE "C" NOT NULL,
    xml     bytea  NOT NULL,
    PRIMARY KEY (account, ns, name)
);

-- When accounts were available for the last time.
CREATE TABLE last_available (
    account bigint PRIMARY KEY REFERENCES account (id),
    at      bigint NOT NULL
);

CREATE TABLE vcard (
    account bigint PRIMARY KEY REFERENCES account (id),
    xml     bytea  NOT NULL
);

-- The nodes of accounts, configured as topics are. `revision`: of the newest item; `bytes`: of the name, and of the ids and payloads of all items.
CREATE TABLE account_node (
    id               bigint   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account          bigint   NOT NULL REFERENCES account (id),
    name             text     COLLATE "C" NOT NULL,
    created          bigint   NOT NULL,
    revision         bigint   NOT NULL,
    items            bigint   NOT NULL DEFAULT 0,
    bytes            bigint   NOT NULL,
    title            text     NOT NULL,
    access_model     smallint NOT NULL,
    publish_model    smallint NOT NULL,
    max_items        bigint   NOT NULL,
    persist_items    boolean  NOT NULL,
    send_last        smallint NOT NULL,
    notify_retract   boolean  NOT NULL,
    notify_delete    boolean  NOT NULL,
    deliver_payloads boolean  NOT NULL,
    UNIQUE (account, name)
);
CREATE TABLE account_node_item (
    node      bigint NOT NULL REFERENCES account_node (id),
    revision  bigint NOT NULL,
    id        text   COLLATE "C" NOT NULL,
    published bigint NOT NULL,
    payload   bytea  NOT NULL,
    PRIMARY KEY (node, revision)
);
CREATE INDEX account_node_item_id ON account_node_item (node, id);

-- Whose messages enter an account's archive, or do not, whatever its default.
CREATE TABLE archive_rule (
    account bigint  NOT NULL REFERENCES account (id),
    jid     text    COLLATE "C" NOT NULL,
    wanted  boolean NOT NULL,
    PRIMARY KEY (account, jid, wanted)
);

-- Archived messages, once for both sides: in whose archives each is, and as which conversation. Archives outlive their accounts until they
-- are swept. `contents`: whether a message has contents of its own.
CREATE TABLE archive_message (
    seq            bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    received       bigint  NOT NULL,
    sender         bigint,
    sender_peer    bigint,
    recipient      bigint,
    recipient_peer bigint,
    contents       boolean NOT NULL,
    stanza         bytea   NOT NULL
);
-- With whom an account has a conversation. No row is used for another.
CREATE TABLE archive_peer (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account bigint NOT NULL,
    jid     text   COLLATE "C" NOT NULL,
    UNIQUE (account, jid)
);
-- The messages of each archive. `kind`: `EntryKind`.
CREATE TABLE archive_entry (
    account bigint   NOT NULL,
    seq     bigint   NOT NULL,
    peer    bigint   NOT NULL,
    kind    smallint NOT NULL,
    PRIMARY KEY (account, seq)
);
CREATE INDEX archive_conversation ON archive_entry (account, peer, seq);
-- What an archive holds, and up to which message it was erased.
CREATE TABLE archive (
    account  bigint PRIMARY KEY,
    messages bigint NOT NULL DEFAULT 0,
    bytes    bigint NOT NULL DEFAULT 0,
    erased   bigint NOT NULL DEFAULT 0
);
-- How conversations stand (`Conversation`).
CREATE TABLE inbox (
    account bigint   NOT NULL,
    peer    bigint   NOT NULL,
    last    bigint   NOT NULL DEFAULT 0,
    read    bigint   NOT NULL DEFAULT 0,
    unread  bigint   NOT NULL DEFAULT 0,
    marked  bigint   NOT NULL DEFAULT 0,
    folder  smallint NOT NULL DEFAULT 0,
    moved   bigint   NOT NULL DEFAULT 0,
    muted   bigint   NOT NULL DEFAULT 0,
    PRIMARY KEY (account, peer)
);
CREATE INDEX inbox_bin ON inbox (account) WHERE folder = 2;
CREATE INDEX inbox_last ON inbox (account, last DESC);

-- What a domain has of links: the secret that their codes are derived with, how many there are, and what they take up.
CREATE TABLE link_domain (
    domain bigint PRIMARY KEY REFERENCES domain (id),
    secret bytea  NOT NULL,
    links  bigint NOT NULL DEFAULT 0,
    bytes  bigint NOT NULL DEFAULT 0
);
CREATE TABLE link (
    id         bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    domain     bigint  NOT NULL REFERENCES domain (id),
    code       text    COLLATE "C" NOT NULL,
    url        text    NOT NULL,
    may_change boolean NOT NULL,
    created    bigint  NOT NULL,
    expires    bigint,
    -- Since when it is taken down; null while it leads somewhere.
    removed    bigint,
    key        bigint,
    UNIQUE (domain, code)
);
CREATE INDEX link_domain_id ON link (domain, id);
CREATE INDEX link_expires ON link (expires) WHERE expires IS NOT NULL;
CREATE TABLE link_click (
    link   bigint PRIMARY KEY REFERENCES link (id),
    clicks bigint NOT NULL,
    last   bigint NOT NULL
);
CREATE TABLE link_file (
    domain bigint   NOT NULL REFERENCES domain (id),
    file   smallint NOT NULL,
    body   bytea    NOT NULL,
    PRIMARY KEY (domain, file)
);
