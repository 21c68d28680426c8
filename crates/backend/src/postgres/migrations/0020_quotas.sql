-- How many accounts and topics a domain may have, how many topics one account may own and follow, how many sessions and bytes out per second the
-- domain may have together; until now as many as the node allows.
ALTER TABLE domain ADD COLUMN accounts_max bigint NOT NULL DEFAULT 0;
ALTER TABLE domain ADD COLUMN topics_max bigint NOT NULL DEFAULT 0;
ALTER TABLE domain ADD COLUMN topics_owned_max bigint NOT NULL DEFAULT 0;
ALTER TABLE domain ADD COLUMN subscriptions_max bigint NOT NULL DEFAULT 0;
ALTER TABLE domain ADD COLUMN sessions_total_max bigint NOT NULL DEFAULT 0;
ALTER TABLE domain ADD COLUMN bytes_out_per_second bigint NOT NULL DEFAULT 0;
ALTER TABLE domain ADD COLUMN stored_bytes_max bigint NOT NULL DEFAULT 0;
ALTER TABLE domain_grant ADD COLUMN accounts_max bigint NOT NULL DEFAULT 0;
ALTER TABLE domain_grant ADD COLUMN topics_max bigint NOT NULL DEFAULT 0;
ALTER TABLE domain_grant ADD COLUMN topics_owned_max bigint NOT NULL DEFAULT 0;
ALTER TABLE domain_grant ADD COLUMN subscriptions_max bigint NOT NULL DEFAULT 0;
ALTER TABLE domain_grant ADD COLUMN sessions_total_max bigint NOT NULL DEFAULT 0;
ALTER TABLE domain_grant ADD COLUMN bytes_out_per_second bigint NOT NULL DEFAULT 0;
ALTER TABLE domain_grant ADD COLUMN stored_bytes_max bigint NOT NULL DEFAULT 0;

-- Names of which the certificate that a key's client shows must have one, a line each; none where it need not show one.
ALTER TABLE api_key ADD COLUMN certificates text NOT NULL DEFAULT '';

-- What is stored of a domain's accounts and topics, when it was measured last.
ALTER TABLE domain ADD COLUMN stored_bytes bigint NOT NULL DEFAULT 0;
