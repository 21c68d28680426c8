-- Extensions in WebAssembly: the versions that were pushed, and which of them are activated.
CREATE TABLE module (
    name   TEXT NOT NULL,
    hash   BLOB NOT NULL,
    pushed INTEGER NOT NULL,
    code   BLOB NOT NULL,
    PRIMARY KEY (name, hash)
) STRICT;
CREATE TABLE module_activation (
    name        TEXT PRIMARY KEY,
    hash        BLOB NOT NULL,
    config      TEXT NOT NULL,
    -- The last good version, which decides for all others.
    base        BLOB,
    base_config TEXT NOT NULL,
    domain      TEXT,
    percent     INTEGER NOT NULL,
    shadow      INTEGER NOT NULL,
    closed      INTEGER NOT NULL,
    since       INTEGER NOT NULL
) STRICT;
