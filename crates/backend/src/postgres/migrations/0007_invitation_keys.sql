-- The same with what an invitation names: whoever registers by it becomes a contact of who made it. That never changes. Servers of the version
-- before call the function without it.
CREATE FUNCTION lock_keys(keys bigint[], exclusive boolean[], domains bigint[], locals text[], notifications uuid[], invitations bytea[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    wanted record;
BEGIN
    FOR wanted IN
        SELECT key, bool_or(alone) AS alone FROM (
            SELECT key, alone FROM unnest(keys, exclusive) AS named (key, alone)
            UNION ALL
            SELECT hashtextextended(local, domain), true FROM unnest(domains, locals) AS account (domain, local)
            UNION ALL
            SELECT hashtextextended(n.local, n.domain), true FROM notification n WHERE n.id = ANY (notifications)
            UNION ALL
            SELECT hashtextextended(a.local, a.domain), true FROM invitation i JOIN account a ON a.id = i.account
                WHERE i.hash = ANY (invitations)
        ) AS wanted GROUP BY key ORDER BY key
    LOOP
        IF wanted.alone THEN
            PERFORM pg_advisory_xact_lock(wanted.key);
        ELSE
            PERFORM pg_advisory_xact_lock_shared(wanted.key);
        END IF;
    END LOOP;
END $$;
