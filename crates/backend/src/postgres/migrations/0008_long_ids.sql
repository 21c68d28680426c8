-- What clients name may be longer than an entry of an index can be: it is found by its hash, and compared. Servers of the version before find it, too, by
-- the first column. That an id is there once holds by the lock of the topic or the account.
ALTER TABLE item DROP CONSTRAINT item_topic_id_key;
CREATE INDEX item_id ON item (topic, hashtextextended(id, 0));
DROP INDEX account_node_item_id;
CREATE INDEX account_node_item_id ON account_node_item (node, hashtextextended(id, 0));
ALTER TABLE blocked DROP CONSTRAINT blocked_pkey;
CREATE INDEX blocked_jid ON blocked (account, hashtextextended(jid, 0));
ALTER TABLE archive_rule DROP CONSTRAINT archive_rule_pkey;
CREATE INDEX archive_rule_jid ON archive_rule (account, hashtextextended(jid, 0));
