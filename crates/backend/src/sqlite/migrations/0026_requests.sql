-- Of contacts that are not listed, because they have only asked for a subscription: the generation at which they did. They are found by it, so that
-- the oldest can go for the newest; and they do not count in `roster_bytes`, nor does what came with a request.
ALTER TABLE contact ADD COLUMN asked INTEGER;
CREATE INDEX contact_asked ON contact (account, asked) WHERE listed = 0;
UPDATE account SET roster_bytes = max(0, roster_bytes - (
    SELECT coalesce(sum(coalesce(length(request), 0) + CASE listed WHEN 0 THEN length(CAST(jid AS BLOB)) ELSE 0 END), 0)
    FROM contact WHERE account = account.id
));
