-- Whether accounts change their passwords and remove themselves over XMPP (XEP-0077): until now they did where anybody could register.
ALTER TABLE domain ADD COLUMN account_management INTEGER NOT NULL DEFAULT 1;
-- Whether followers are sent items with their payloads (XEP-0060 §4.3): until now always.
ALTER TABLE topic ADD COLUMN deliver_payloads INTEGER NOT NULL DEFAULT 1;
ALTER TABLE account_node ADD COLUMN deliver_payloads INTEGER NOT NULL DEFAULT 1;
