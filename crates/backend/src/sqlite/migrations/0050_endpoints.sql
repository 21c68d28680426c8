-- Endpoints of this server as a push service, at which senders of Web Push reach applications on devices (`endpoint.rs`). The tokens in their URLs
-- are not here: they are signed.
CREATE TABLE endpoint (
    id          BLOB    PRIMARY KEY,
    account     INTEGER NOT NULL REFERENCES account (id),
    resource    TEXT    NOT NULL,
    -- What names the application, and its instance, to the client.
    application BLOB    NOT NULL,
    instance    BLOB    NOT NULL,
    -- The public key of the only sender; null for all.
    sender      BLOB,
    created     INTEGER NOT NULL,
    expires     INTEGER NOT NULL,
    UNIQUE (account, resource, application, instance)
) STRICT, WITHOUT ROWID;
CREATE INDEX endpoint_expires ON endpoint (expires);

-- A push to an endpoint is for one client of the account: that with this resource. Its payload is the id of the endpoint, and the element.
ALTER TABLE notification ADD COLUMN resource TEXT;
