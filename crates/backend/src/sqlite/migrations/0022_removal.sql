-- Names of accounts that were removed, and until when nobody registers them in-band.
CREATE TABLE held_name (
    domain INTEGER NOT NULL REFERENCES domain (id),
    local  TEXT    NOT NULL,
    until  INTEGER NOT NULL,
    UNIQUE (domain, local)
) STRICT;
CREATE INDEX held_name_until ON held_name (until);

-- Who has asked for the presence of an account, or lets it subscribe in advance, and is perhaps not in its roster (`roster.rs`).
CREATE INDEX contact_ahead ON contact (jid) WHERE standing & 20 <> 0;

-- Until here accounts that removed themselves, and those of domains that were removed, stayed in the rosters of others as they were. Subscriptions
-- with an account that is not there end; a contact that was remembered for nothing else goes.
CREATE TABLE stale AS
    SELECT account, jid, listed, coalesce(length(request), 0) AS request, length(CAST(jid AS BLOB)) AS bytes FROM contact
    WHERE standing & 11 <> 0 AND NOT EXISTS (
        SELECT 1 FROM domain d CROSS JOIN account a ON a.domain = d.id AND a.local = substr(jid, 1, instr(jid, '@') - 1)
        WHERE d.name = substr(jid, instr(jid, '@') + 1));
UPDATE account SET record = record + 1, roster = record + 1,
    requests = requests - (SELECT count(*) FROM stale WHERE stale.account = account.id AND listed = 0),
    roster_bytes = roster_bytes
        - (SELECT coalesce(sum(request + iif(listed, 0, bytes)), 0) FROM stale WHERE stale.account = account.id)
    WHERE id IN (SELECT account FROM stale);
UPDATE contact SET standing = 0, request = NULL WHERE (account, jid) IN (SELECT account, jid FROM stale);
DELETE FROM contact WHERE (account, jid) IN (SELECT account, jid FROM stale WHERE listed = 0);
DROP TABLE stale;
