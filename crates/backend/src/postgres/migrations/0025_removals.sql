-- Removals of accounts and of whole domains of which parts are left: whoever finds them here goes on.
CREATE TABLE removal (
    -- 0 for the domain itself.
    account bigint NOT NULL,
    domain  bigint NOT NULL,
    -- When the last part was removed.
    at      bigint NOT NULL,
    PRIMARY KEY (account, domain)
);
