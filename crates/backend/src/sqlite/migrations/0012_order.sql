-- Delivery order is the order of the commits, `seq`, and not that of the times of acceptance, which go back when the clock is set back.
-- The index has `seq`, the rowid, as its last column.
DROP INDEX notification_queue;
CREATE INDEX notification_queue ON notification (account, due, rank);
