-- What the writer would else have to count anew with each write: what an account keeps, and how much of it.
ALTER TABLE account ADD COLUMN private_bytes INTEGER NOT NULL DEFAULT 0;
UPDATE account SET private_bytes = (
    SELECT coalesce(sum(length(CAST(ns AS BLOB)) + length(CAST(name AS BLOB)) + length(xml)), 0)
    FROM private WHERE private.account = account.id);

ALTER TABLE account ADD COLUMN blocked INTEGER NOT NULL DEFAULT 0;
ALTER TABLE account ADD COLUMN blocked_bytes INTEGER NOT NULL DEFAULT 0;
UPDATE account SET (blocked, blocked_bytes) = (
    SELECT count(*), coalesce(sum(length(CAST(jid AS BLOB))), 0) FROM blocked WHERE blocked.account = account.id);

ALTER TABLE account ADD COLUMN nodes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE account ADD COLUMN node_bytes INTEGER NOT NULL DEFAULT 0;
UPDATE account SET (nodes, node_bytes) = (
    SELECT count(*), coalesce(sum(bytes), 0) FROM account_node WHERE account_node.account = account.id);

ALTER TABLE account_node ADD COLUMN items INTEGER NOT NULL DEFAULT 0;
UPDATE account_node SET items = (SELECT count(*) FROM account_node_item WHERE node = account_node.id);
CREATE INDEX account_node_item_id ON account_node_item (node, id);

-- The conversations in the bin: few of many.
CREATE INDEX inbox_bin ON inbox (account) WHERE folder = 2;
