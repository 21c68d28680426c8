-- Endpoints of this server as a push service, at which senders of Web Push reach applications on devices. The tokens in their URLs are not here: they
-- are signed.
CREATE TABLE endpoint (
    id          uuid   PRIMARY KEY,
    account     bigint NOT NULL REFERENCES account (id),
    resource    text   NOT NULL,
    -- What names the application, and its instance, to the client.
    application bytea  NOT NULL,
    instance    bytea  NOT NULL,
    -- The public key of the only sender; null for all.
    sender      bytea,
    created     bigint NOT NULL,
    expires     bigint NOT NULL,
    UNIQUE (account, resource, application, instance)
);
CREATE INDEX endpoint_expires ON endpoint (expires);

-- A push to an endpoint is for one client of the account: that with this resource. Its payload is the id of the endpoint, and the element.
ALTER TABLE notification ADD COLUMN resource text;
