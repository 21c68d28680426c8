-- Broadcasts: notifications for every account of a domain, each one row.
CREATE TABLE broadcast (
    seq          bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id           uuid    NOT NULL UNIQUE,
    domain       bigint  NOT NULL REFERENCES domain (id),
    open         boolean NOT NULL,
    expires      bigint  NOT NULL,
    ended        bigint,
    revision     bigint  NOT NULL,
    bytes        bigint  NOT NULL,
    -- Accounts that acknowledged it while it was open.
    acknowledged bigint  NOT NULL DEFAULT 0,
    -- Whether `broadcast_end` may have rows of it.
    has_ends     boolean NOT NULL DEFAULT true,
    -- The whole of it, in the form of values that leave a process.
    form         bytea   NOT NULL
);
CREATE INDEX broadcast_domain_id ON broadcast (domain, id);
CREATE INDEX broadcast_open ON broadcast (domain) WHERE open;
CREATE INDEX broadcast_expires ON broadcast (expires) WHERE open;
CREATE INDEX broadcast_ended ON broadcast (ended) WHERE ended IS NOT NULL;
CREATE INDEX broadcast_revision_order ON broadcast (revision);
CREATE INDEX broadcast_has_ends ON broadcast (domain) WHERE has_ends;

-- Accounts that acknowledged a broadcast. They are removed when it has ended.
CREATE TABLE broadcast_end (
    broadcast bigint   NOT NULL,
    account   bigint   NOT NULL,
    at        bigint   NOT NULL,
    by        smallint NOT NULL,
    PRIMARY KEY (broadcast, account)
);

-- How often each of those who count has counted that it was given.
CREATE TABLE broadcast_given (
    broadcast bigint NOT NULL,
    counter   bigint NOT NULL,
    given     bigint NOT NULL,
    PRIMARY KEY (broadcast, counter)
);

-- The revision of the last change of any broadcast.
CREATE TABLE broadcast_revision (
    newest bigint NOT NULL
);
INSERT INTO broadcast_revision VALUES (0);
