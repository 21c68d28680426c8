-- The pushes of a registration that are tried again later, which are due at once when it is made anew: without this all its pushes are read for that.
CREATE INDEX push_failed ON push (registration) WHERE has_failed AND owner IS NULL;
