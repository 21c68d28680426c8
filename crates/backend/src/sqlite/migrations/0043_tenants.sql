-- Whether accounts of a domain exchange stanzas with those of others, which nobody was asked until now; how many requests, stanzas and bytes per second.
ALTER TABLE domain ADD COLUMN other_domains INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domain ADD COLUMN requests_per_second INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domain ADD COLUMN stanzas_per_second INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domain ADD COLUMN bytes_per_second INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domain_grant ADD COLUMN other_domains INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domain_grant ADD COLUMN requests_per_second INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domain_grant ADD COLUMN stanzas_per_second INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domain_grant ADD COLUMN bytes_per_second INTEGER NOT NULL DEFAULT 0;

-- What administrators did, by which key; kept when the key and its domain are gone.
CREATE TABLE act (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    at         INTEGER NOT NULL,
    key        INTEGER NOT NULL,
    key_name   TEXT NOT NULL,
    key_domain INTEGER,
    address    TEXT,
    what       TEXT NOT NULL,
    reason     TEXT,
    outcome    TEXT NOT NULL,
    request    TEXT NOT NULL
) STRICT;
CREATE INDEX act_key ON act (key, id);
CREATE INDEX act_domain ON act (key_domain, id) WHERE key_domain IS NOT NULL;

-- The networks from which a key may be used, a line each, none for any; when it was used, to an hour.
ALTER TABLE api_key ADD COLUMN networks TEXT NOT NULL DEFAULT '';
ALTER TABLE api_key ADD COLUMN used INTEGER;
