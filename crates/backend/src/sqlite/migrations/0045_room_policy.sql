-- Who creates rooms over XMPP, how many one account may own, and how many the domain may have; until now everybody, and as many as the node allows.
ALTER TABLE domain ADD COLUMN rooms_create INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domain ADD COLUMN rooms_owned_max INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domain ADD COLUMN rooms_max INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domain_grant ADD COLUMN rooms_create INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domain_grant ADD COLUMN rooms_owned_max INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domain_grant ADD COLUMN rooms_max INTEGER NOT NULL DEFAULT 0;

-- How many rooms there are, so that a bound is not looked for by going through them while other writes wait.
ALTER TABLE domain ADD COLUMN rooms INTEGER NOT NULL DEFAULT 0;
UPDATE domain SET rooms = (SELECT count(*) FROM room WHERE room.domain = domain.id);
CREATE TRIGGER room_created AFTER INSERT ON room BEGIN
    UPDATE domain SET rooms = rooms + 1 WHERE id = NEW.domain;
END;
CREATE TRIGGER room_removed AFTER DELETE ON room BEGIN
    UPDATE domain SET rooms = rooms - 1 WHERE id = OLD.domain;
END;
