-- What is told to others of notifications that ended: an event for each, in the commit that ends it, whatever ends it. The numbers ascend
-- in the order of the commits, as one connection writes, and none is given twice. Of ends before this version there are no events.
CREATE TABLE event (
    number       INTEGER PRIMARY KEY AUTOINCREMENT,
    notification BLOB    NOT NULL,
    -- As in the trace, so that what is forgotten with it is found from the oldest on.
    ended        INTEGER NOT NULL
) STRICT;

CREATE TRIGGER trace_event AFTER INSERT ON trace BEGIN
    INSERT INTO event (notification, ended) VALUES (NEW.id, NEW.ended);
END;
