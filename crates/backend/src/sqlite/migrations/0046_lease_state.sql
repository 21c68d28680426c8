-- What the holder of a lease last said of itself: JSON.
ALTER TABLE lease ADD COLUMN state TEXT;
