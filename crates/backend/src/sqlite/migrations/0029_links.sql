-- Short links, the files of the apps that open them, and clicks.

-- What a domain has of links: the secret that their codes are derived with, how many there are, and what they take up. It is made when it
-- is first asked for.
CREATE TABLE link_domain (
    domain INTEGER PRIMARY KEY REFERENCES domain (id),
    secret BLOB    NOT NULL,
    links  INTEGER NOT NULL DEFAULT 0,
    bytes  INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE link (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    domain     INTEGER NOT NULL REFERENCES domain (id),
    code       TEXT    NOT NULL,
    url        TEXT    NOT NULL,
    may_change INTEGER NOT NULL,
    created    INTEGER NOT NULL,
    expires    INTEGER,
    -- Since when it is taken down; null while it leads somewhere.
    removed    INTEGER,
    key        INTEGER,
    UNIQUE (domain, code)
) STRICT;

-- With `id`, the rowid, as its second column: the order of a list.
CREATE INDEX link_domain_id ON link (domain);
CREATE INDEX link_expires ON link (expires) WHERE expires IS NOT NULL;

-- Apart from `link` and narrow, so that clicks on many links change few pages.
CREATE TABLE link_click (
    link   INTEGER PRIMARY KEY REFERENCES link (id),
    clicks INTEGER NOT NULL,
    last   INTEGER NOT NULL
) STRICT;

CREATE TABLE link_file (
    domain INTEGER NOT NULL REFERENCES domain (id),
    file   INTEGER NOT NULL,
    body   BLOB    NOT NULL,
    PRIMARY KEY (domain, file)
) STRICT, WITHOUT ROWID;

-- When the link of a notification that has ended was followed first, and with what.
ALTER TABLE trace ADD COLUMN opened INTEGER;
ALTER TABLE trace ADD COLUMN agent INTEGER;

-- Whether the event tells that, and not the end.
ALTER TABLE event ADD COLUMN opened INTEGER NOT NULL DEFAULT 0;

CREATE TRIGGER trace_opened AFTER UPDATE OF opened ON trace WHEN OLD.opened IS NULL AND NEW.opened IS NOT NULL BEGIN
    INSERT INTO event (notification, ended, opened) VALUES (NEW.id, NEW.opened, 1);
END;
