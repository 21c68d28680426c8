-- The registry of a front: its cells, which of them each device is in, and what is held for them. Empty at a node that is no front.
CREATE TABLE cell (
    name          TEXT    PRIMARY KEY,
    weight        INTEGER NOT NULL,
    url           TEXT    NOT NULL,
    -- An API key of the cell.
    secret        TEXT    NOT NULL,
    host          TEXT,
    c2s_port      INTEGER,
    c2s_tls_port  INTEGER,
    websocket_url TEXT,
    -- By the numbers of rows/code.rs.
    drain         INTEGER NOT NULL,
    rate          INTEGER NOT NULL,
    devices       INTEGER NOT NULL DEFAULT 0,
    held          INTEGER NOT NULL DEFAULT 0,
    held_bytes    INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE TABLE placement (
    device     TEXT    PRIMARY KEY,
    cell       TEXT    NOT NULL,
    generation INTEGER NOT NULL,
    -- While it is copied, the cell that it moves to.
    moves_to   TEXT,
    -- When it has arrived, the cell that it is to be removed from.
    moves_from TEXT,
    -- Whether it may log in when its move is over.
    enables    INTEGER NOT NULL DEFAULT 1
) STRICT, WITHOUT ROWID;
CREATE INDEX placement_cell ON placement (cell, device) WHERE moves_to IS NULL AND moves_from IS NULL;
CREATE INDEX placement_moves_to ON placement (moves_to, device) WHERE moves_to IS NOT NULL;
CREATE INDEX placement_moves_from ON placement (moves_from, device) WHERE moves_from IS NOT NULL;

-- Requests that the front has accepted and their cell has not.
CREATE TABLE held (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    id      BLOB    NOT NULL,
    cell    TEXT    NOT NULL,
    series    TEXT    NOT NULL,
    device  TEXT,
    path    TEXT    NOT NULL,
    body    BLOB    NOT NULL,
    expires INTEGER NOT NULL,
    -- What it counts for among what may be held for the cell.
    bytes   INTEGER NOT NULL,
    UNIQUE (id, cell)
) STRICT;
CREATE INDEX held_cell ON held (cell, seq);
CREATE INDEX held_series ON held (cell, series);
CREATE INDEX held_device ON held (device) WHERE device IS NOT NULL;
CREATE INDEX held_expires ON held (expires);
