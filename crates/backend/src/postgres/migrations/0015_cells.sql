-- The registry of a front: its cells, which of them each device is in, and what is held for them. Empty at a node that is no front.
CREATE TABLE cell (
    name          text     PRIMARY KEY,
    weight        bigint   NOT NULL,
    url           text     NOT NULL,
    -- An API key of the cell.
    secret        text     NOT NULL,
    host          text,
    c2s_port      bigint,
    c2s_tls_port  bigint,
    websocket_url text,
    -- By the numbers of rows/code.rs.
    drain         smallint NOT NULL,
    rate          bigint   NOT NULL,
    devices       bigint   NOT NULL DEFAULT 0,
    held          bigint   NOT NULL DEFAULT 0,
    held_bytes    bigint   NOT NULL DEFAULT 0
);

CREATE TABLE placement (
    device     text   COLLATE "C" PRIMARY KEY,
    cell       text   NOT NULL,
    generation bigint NOT NULL,
    -- While it is copied, the cell that it moves to.
    moves_to   text,
    -- When it has arrived, the cell that it is to be removed from.
    moves_from text,
    -- Whether it may log in when its move is over.
    enables    boolean NOT NULL DEFAULT true
);
CREATE INDEX placement_cell ON placement (cell, device) WHERE moves_to IS NULL AND moves_from IS NULL;
CREATE INDEX placement_moves_to ON placement (moves_to, device) WHERE moves_to IS NOT NULL;
CREATE INDEX placement_moves_from ON placement (moves_from, device) WHERE moves_from IS NOT NULL;

-- Requests that the front has accepted and their cell has not.
CREATE TABLE held (
    seq     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id      uuid   NOT NULL,
    cell    text   NOT NULL,
    series    text   NOT NULL,
    device  text   COLLATE "C",
    path    text   NOT NULL,
    body    bytea  NOT NULL,
    expires bigint NOT NULL,
    -- What it counts for among what may be held for the cell.
    bytes   bigint NOT NULL,
    UNIQUE (id, cell)
);
CREATE INDEX held_cell ON held (cell, seq);
CREATE INDEX held_series ON held (cell, series);
CREATE INDEX held_device ON held (device) WHERE device IS NOT NULL;
CREATE INDEX held_expires ON held (expires);
