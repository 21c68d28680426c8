-- Invitations to domains. `account` made it; `local` is the only name that can be registered with it.
CREATE TABLE invitation (
    id        bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    domain    bigint  NOT NULL REFERENCES domain (id),
    account   bigint  REFERENCES account (id),
    hash      bytea   NOT NULL UNIQUE,
    local     text    COLLATE "C",
    registers boolean NOT NULL,
    uses_max  bigint  NOT NULL,
    uses      bigint  NOT NULL DEFAULT 0,
    created   bigint  NOT NULL,
    expires   bigint  NOT NULL
);
CREATE INDEX invitation_domain ON invitation (domain, id);
CREATE INDEX invitation_account ON invitation (account) WHERE account IS NOT NULL;
-- Those that have expired are found by it.
CREATE INDEX invitation_expires ON invitation (domain, expires);
