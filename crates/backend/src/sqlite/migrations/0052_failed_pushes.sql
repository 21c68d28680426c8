-- The pushes of a registration that are tried again later, which are due at once when it is made anew: without this all its pushes are read for that.
CREATE INDEX push_failed ON push (registration) WHERE has_failed AND owner IS NULL;

-- Broadcasts that have ended, and of whose accounts something is kept: a sweep looked for one among all that are open.
CREATE INDEX broadcast_ended_ends ON broadcast (seq) WHERE has_ends AND NOT open;
