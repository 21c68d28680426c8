-- Extensions in WebAssembly: the versions that were pushed, and which of them are activated.
CREATE TABLE module (
    name   text NOT NULL,
    hash   bytea NOT NULL,
    pushed bigint NOT NULL,
    code   bytea NOT NULL,
    PRIMARY KEY (name, hash)
);
CREATE TABLE module_activation (
    name        text PRIMARY KEY,
    hash        bytea NOT NULL,
    config      text NOT NULL,
    -- The last good version, which decides for all others.
    base        bytea,
    base_config text NOT NULL,
    domain      text,
    percent     bigint NOT NULL,
    shadow      boolean NOT NULL,
    closed      boolean NOT NULL,
    since       bigint NOT NULL
);
