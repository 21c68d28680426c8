-- The same with what an invitation names: whoever registers by it becomes a contact of who made it. That never changes. Servers of the version
-- before call the function without it.
CREATE FUNCTION lock_keys(keys bigint[], exclusive boolean[], domains bigint[], locals text[], notifications uuid[], invitations bytea[])
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    -- One statement: a loop takes twice as long. The locks are taken in the order in which the rows come, which is sorted.
    PERFORM count(CASE WHEN alone THEN pg_advisory_xact_lock(key) ELSE pg_advisory_xact_lock_shared(key) END) FROM (
        SELECT key, bool_or(alone) AS alone FROM (
            SELECT key, alone FROM unnest(keys, exclusive) AS named (key, alone)
            UNION ALL
            SELECT hashtextextended(local, domain), true FROM unnest(domains, locals) AS account (domain, local)
            UNION ALL
            SELECT hashtextextended(n.local, n.domain), true FROM notification n WHERE n.id = ANY (notifications)
            UNION ALL
            SELECT hashtextextended(a.local, a.domain), true FROM invitation i JOIN account a ON a.id = i.account
                WHERE i.hash = ANY (invitations)
        ) AS wanted GROUP BY key ORDER BY key) AS sorted;
END $$;
