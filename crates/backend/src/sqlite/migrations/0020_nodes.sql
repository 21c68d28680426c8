-- The nodes of accounts (`node.rs`), configured as topics are. `revision`: of the newest item; `bytes`: of the name, and of the ids and payloads
-- of all items.
CREATE TABLE account_node (
    id             INTEGER PRIMARY KEY,
    account        INTEGER NOT NULL REFERENCES account (id),
    name           TEXT    NOT NULL,
    created        INTEGER NOT NULL,
    revision       INTEGER NOT NULL,
    bytes          INTEGER NOT NULL,
    title          TEXT    NOT NULL,
    access_model   INTEGER NOT NULL,
    publish_model  INTEGER NOT NULL,
    max_items      INTEGER NOT NULL,
    persist_items  INTEGER NOT NULL,
    send_last      INTEGER NOT NULL,
    notify_retract INTEGER NOT NULL,
    notify_delete  INTEGER NOT NULL,
    UNIQUE (account, name)
) STRICT;

-- What they keep.
CREATE TABLE account_node_item (
    node      INTEGER NOT NULL REFERENCES account_node (id),
    revision  INTEGER NOT NULL,
    id        TEXT    NOT NULL,
    published INTEGER NOT NULL,
    payload   BLOB    NOT NULL,
    UNIQUE (node, revision)
) STRICT;
