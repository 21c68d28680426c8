-- Who creates rooms over XMPP, how many one account may own, and how many the domain may have; until now everybody, and as many as the node allows.
ALTER TABLE domain ADD COLUMN rooms_create smallint NOT NULL DEFAULT 0;
ALTER TABLE domain ADD COLUMN rooms_owned_max bigint NOT NULL DEFAULT 0;
ALTER TABLE domain ADD COLUMN rooms_max bigint NOT NULL DEFAULT 0;
ALTER TABLE domain_grant ADD COLUMN rooms_create smallint NOT NULL DEFAULT 0;
ALTER TABLE domain_grant ADD COLUMN rooms_owned_max bigint NOT NULL DEFAULT 0;
ALTER TABLE domain_grant ADD COLUMN rooms_max bigint NOT NULL DEFAULT 0;
