-- The nodes of a cell: an epoch is a number among those of all nodes, and of each node is known where it is, what it does, and whether it
-- was buried.

CREATE TABLE node_epoch (
    newest bigint NOT NULL
);
INSERT INTO node_epoch SELECT coalesce(max(epoch), 0) FROM node;

ALTER TABLE node
    ADD COLUMN address text        NOT NULL DEFAULT '',
    ADD COLUMN roles   text        NOT NULL DEFAULT '',
    ADD COLUMN dead    boolean     NOT NULL DEFAULT false,
    -- Since when it is as it is.
    ADD COLUMN since   timestamptz NOT NULL DEFAULT now();
