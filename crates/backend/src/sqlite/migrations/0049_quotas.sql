-- How many accounts and topics a domain may have, how many topics one account may own and follow, how many sessions and bytes out per second the
-- domain may have together; until now as many as the node allows.
ALTER TABLE domain ADD COLUMN accounts_max INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domain ADD COLUMN topics_max INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domain ADD COLUMN topics_owned_max INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domain ADD COLUMN subscriptions_max INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domain ADD COLUMN sessions_total_max INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domain ADD COLUMN bytes_out_per_second INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domain ADD COLUMN stored_bytes_max INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domain_grant ADD COLUMN accounts_max INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domain_grant ADD COLUMN topics_max INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domain_grant ADD COLUMN topics_owned_max INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domain_grant ADD COLUMN subscriptions_max INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domain_grant ADD COLUMN sessions_total_max INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domain_grant ADD COLUMN bytes_out_per_second INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domain_grant ADD COLUMN stored_bytes_max INTEGER NOT NULL DEFAULT 0;

-- How many accounts and topics there are, so that a bound is not looked for by going through them while other writes wait.
ALTER TABLE domain ADD COLUMN accounts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domain ADD COLUMN topics INTEGER NOT NULL DEFAULT 0;
UPDATE domain SET accounts = (SELECT count(*) FROM account WHERE account.domain = domain.id),
                  topics = (SELECT count(*) FROM topic WHERE topic.domain = domain.id);
CREATE TRIGGER account_created AFTER INSERT ON account BEGIN
    UPDATE domain SET accounts = accounts + 1 WHERE id = NEW.domain;
END;
CREATE TRIGGER account_removed AFTER DELETE ON account BEGIN
    UPDATE domain SET accounts = accounts - 1 WHERE id = OLD.domain;
END;
CREATE TRIGGER topic_created AFTER INSERT ON topic BEGIN
    UPDATE domain SET topics = topics + 1 WHERE id = NEW.domain;
END;
CREATE TRIGGER topic_removed AFTER DELETE ON topic BEGIN
    UPDATE domain SET topics = topics - 1 WHERE id = OLD.domain;
END;

-- Names of which the certificate that a key's client shows must have one, a line each; none where it need not show one.
ALTER TABLE api_key ADD COLUMN certificates TEXT NOT NULL DEFAULT '';

-- What is stored of a domain's accounts and topics, when it was measured last.
ALTER TABLE domain ADD COLUMN stored_bytes INTEGER NOT NULL DEFAULT 0;
