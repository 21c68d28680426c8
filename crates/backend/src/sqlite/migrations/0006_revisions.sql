-- A revision per topic and a generation per account, in place of one revision for all.
--
-- Until here the revision was the key of an item, and the same number for every topic: those that were given stay, and each
-- topic goes on from the highest.
ALTER TABLE topic ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
UPDATE topic SET revision = (SELECT revision FROM node);

DROP INDEX item_topic;
ALTER TABLE item RENAME COLUMN revision TO seq;
ALTER TABLE item ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
UPDATE item SET revision = seq;
CREATE UNIQUE INDEX item_topic ON item (topic, revision);

-- The generation of an account is the highest of its row and of its subscriptions: so a new subscription, which is written to
-- another page than its account, does not change that page, too.
ALTER TABLE account ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
ALTER TABLE subscription ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;

-- What is left of `node.revision` tells the readers of this file that a topic has changed, and nobody else anything.
ALTER TABLE node RENAME COLUMN revision TO topic_changes;
