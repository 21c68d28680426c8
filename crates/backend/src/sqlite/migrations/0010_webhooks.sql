-- URLs that are told how notifications ended: each is a place among the events (`webhook.rs`).
CREATE TABLE webhook (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    -- Whose notifications; null for all.
    domain       INTEGER REFERENCES domain (id),
    url          TEXT    NOT NULL,
    -- A bit per state, by the numbers of column.rs.
    states       INTEGER NOT NULL,
    secret       BLOB    NOT NULL,
    status       INTEGER NOT NULL DEFAULT 0,
    created      INTEGER NOT NULL,
    -- The number of the last event that is dealt with.
    cursor       INTEGER NOT NULL,
    failures     INTEGER NOT NULL DEFAULT 0,
    refusals     INTEGER NOT NULL DEFAULT 0,
    is_alone     INTEGER NOT NULL DEFAULT 0,
    next_attempt INTEGER,
    failed       INTEGER,
    error        TEXT,
    -- Who sends its events, and until when nobody else does; null for nobody.
    owner        INTEGER,
    claimed      INTEGER,
    -- What is in `dead_letter`, so that nobody counts it; and what is not there any more.
    letters      INTEGER NOT NULL DEFAULT 0,
    letter_bytes INTEGER NOT NULL DEFAULT 0,
    dropped      INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX webhook_domain ON webhook (domain) WHERE domain IS NOT NULL;

-- Events that receivers did not take.
CREATE TABLE dead_letter (
    webhook INTEGER NOT NULL REFERENCES webhook (id),
    event   INTEGER NOT NULL,
    failed  INTEGER NOT NULL,
    error   TEXT    NOT NULL,
    body    BLOB    NOT NULL,
    PRIMARY KEY (webhook, event)
) STRICT, WITHOUT ROWID;
