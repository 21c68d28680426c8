-- Removals of accounts and of whole domains of which parts are left: whoever finds them here goes on.
CREATE TABLE removal (
    -- 0 for the domain itself.
    account INTEGER NOT NULL,
    domain  INTEGER NOT NULL,
    -- When the last part was removed.
    at      INTEGER NOT NULL,
    PRIMARY KEY (account, domain)
) STRICT, WITHOUT ROWID;
