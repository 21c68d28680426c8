-- What the operator grants a domain, within which its own administrators choose the policy; how many keys it has; keys that expire.

ALTER TABLE domain ADD COLUMN keys_max INTEGER NOT NULL DEFAULT 100;

CREATE TABLE domain_grant (
    domain               INTEGER PRIMARY KEY REFERENCES domain (id),
    sessions             INTEGER NOT NULL,
    registration         INTEGER NOT NULL,
    pubsub_create        INTEGER NOT NULL,
    sessions_max         INTEGER NOT NULL,
    messages_durable     INTEGER NOT NULL,
    resumption_ms_max    INTEGER NOT NULL,
    archive              INTEGER NOT NULL,
    archive_days         INTEGER NOT NULL,
    archive_messages_max INTEGER NOT NULL,
    archive_bytes_max    INTEGER NOT NULL,
    keys_max             INTEGER NOT NULL,
    account_management   INTEGER NOT NULL
) STRICT;

-- No domain has fewer keys than it has.
UPDATE domain SET keys_max = max(keys_max, (SELECT count(*) FROM api_key WHERE domain = domain.id));

-- Until now a policy was both.
INSERT INTO domain_grant
SELECT id, sessions, registration, pubsub_create, sessions_max, messages_durable, resumption_ms_max, archive, archive_days,
       archive_messages_max, archive_bytes_max, keys_max, account_management
FROM domain;

-- Until when the key counts; null for ever.
ALTER TABLE api_key ADD COLUMN expires INTEGER;
