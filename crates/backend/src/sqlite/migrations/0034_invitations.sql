-- Invitations to domains (`invitation.rs`). `account` made it; `local` is the only name that can be registered with it.
CREATE TABLE invitation (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    domain    INTEGER NOT NULL REFERENCES domain (id),
    account   INTEGER REFERENCES account (id),
    hash      BLOB    NOT NULL UNIQUE,
    local     TEXT,
    registers INTEGER NOT NULL,
    uses_max  INTEGER NOT NULL,
    uses      INTEGER NOT NULL DEFAULT 0,
    created   INTEGER NOT NULL,
    expires   INTEGER NOT NULL
) STRICT;
CREATE INDEX invitation_domain ON invitation (domain, id);
CREATE INDEX invitation_account ON invitation (account) WHERE account IS NOT NULL;
-- Those that have expired are found by it.
CREATE INDEX invitation_expires ON invitation (domain, expires);
