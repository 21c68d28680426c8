-- Events of rooms, beside those of notifications, and what of them webhooks and domains want; until now nobody has any.
ALTER TABLE domain ADD COLUMN room_events smallint NOT NULL DEFAULT 0;
ALTER TABLE domain_grant ADD COLUMN room_events smallint NOT NULL DEFAULT 0;

-- Of a room's event: its domain, what happened in its binary form, and the message if one was said. Its `notification` is zero.
ALTER TABLE event ADD COLUMN domain bigint;
ALTER TABLE event ADD COLUMN fact bytea;
ALTER TABLE event ADD COLUMN message bigint;
CREATE INDEX event_domain ON event (domain) WHERE domain IS NOT NULL;

-- A bit per type of event, by the numbers of rows/code.rs; and whether it is told what was said.
ALTER TABLE webhook ADD COLUMN types bigint NOT NULL DEFAULT 1;
ALTER TABLE webhook ADD COLUMN contents boolean NOT NULL DEFAULT false;
