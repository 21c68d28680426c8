//! What holds between the rows of a store. Archives and rooms of whoever is gone are removed in time, and are no findings until then.

/// Something that holds.
pub(crate) struct Rule {
    /// What is found where it does not.
    pub(crate) what: &'static str,
    /// The rows for which it does not: what they are about.
    pub(super) broken: &'static str,
    /// Which stores are asked.
    pub(crate) on: On,
}

/// Which stores a rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    Both,
    Sqlite,
    Postgres,
}

const fn rule(on: On, what: &'static str, broken: &'static str) -> Rule {
    Rule { what, broken, on }
}

/// That a column counts the rows of another table: the table, the column that names its row, the column that counts; the other table as `c`, and its
/// column that names the row; and which of those rows count, if not all of them.
macro_rules! counted {
    ($on:expr, $what:literal, $table:literal $key:literal $counts:literal, $rows:literal $(, $which:literal)?) => {
        rule(
            $on,
            $what,
            concat!(
                "SELECT CAST(t.", $key, " AS text) AS about FROM ", $table, " t WHERE t.", $counts,
                " <> (SELECT count(*) FROM ", $rows, " = t.", $key $(, $which)?, ")"
            ),
        )
    };
}

/// All of them.
pub(crate) const RULES: &[Rule] = &[
    counted!(
        On::Both,
        "accounts whose number of contacts is another than their rosters have",
        "account" "id" "contacts", "contact c WHERE c.account", " AND CAST(c.listed AS integer) = 1"
    ),
    counted!(
        On::Both,
        "accounts whose number of contact requests is another than their rosters have",
        "account" "id" "requests", "contact c WHERE c.account", " AND CAST(c.listed AS integer) = 0"
    ),
    counted!(
        On::Both,
        "accounts whose number of blocked addresses is another than there are",
        "account" "id" "blocked", "blocked c WHERE c.account"
    ),
    counted!(
        On::Both,
        "accounts whose number of blocked rooms is another than there are",
        "account" "id" "room_blocks", "room_block c WHERE c.account"
    ),
    rule(
        On::Sqlite,
        "domains whose number of rooms is another than there are",
        "SELECT t.name AS about FROM domain t WHERE t.rooms <> (SELECT count(*) FROM room c WHERE c.domain = t.id)",
    ),
    counted!(
        On::Both,
        "accounts whose number of nodes is another than there are",
        "account" "id" "nodes", "account_node c WHERE c.account"
    ),
    counted!(
        On::Both,
        "accounts whose number of offline messages is another than there are",
        "account" "id" "offline", "offline c WHERE c.account"
    ),
    rule(
        On::Both,
        "accounts whose offline messages have another size than their rows say",
        "SELECT CAST(t.id AS text) AS about FROM account t WHERE t.offline_bytes <> (SELECT \
         coalesce(sum(length(c.stanza)), 0) FROM offline c WHERE c.account = t.id)",
    ),
    counted!(
        On::Both,
        "accounts whose number of push registrations is another than there are",
        "account" "id" "registrations", "push_registration c WHERE c.account"
    ),
    counted!(
        On::Both,
        "topics whose number of items is another than there are",
        "topic" "id" "items", "item c WHERE c.topic"
    ),
    rule(
        On::Both,
        "topics whose last item is not the newest that is there",
        "SELECT CAST(t.id AS text) AS about FROM topic t WHERE coalesce(t.last, 0) <> (SELECT coalesce(max(c.revision), \
         0) FROM item c WHERE c.topic = t.id)",
    ),
    counted!(
        On::Both,
        "nodes of accounts whose number of items is another than there are",
        "account_node" "id" "items", "account_node_item c WHERE c.node"
    ),
    counted!(
        On::Both,
        "archives whose number of messages is another than there are",
        "archive" "account" "messages", "archive_entry c WHERE c.account"
    ),
    rule(
        On::Both,
        "archives that are not counted",
        "SELECT CAST(e.account AS text) AS about FROM archive_entry e WHERE NOT EXISTS (SELECT 1 FROM archive r WHERE \
         r.account = e.account)",
    ),
    rule(
        On::Both,
        "entries of archives without their messages",
        "SELECT CAST(e.account AS text) AS about FROM archive_entry e WHERE NOT EXISTS (SELECT 1 FROM archive_message m \
         WHERE m.seq = e.seq)",
    ),
    rule(
        On::Both,
        "entries of archives without their conversations",
        "SELECT CAST(e.account AS text) AS about FROM archive_entry e WHERE NOT EXISTS (SELECT 1 FROM archive_peer p \
         WHERE p.id = e.peer)",
    ),
    rule(
        On::Both,
        "conversations of inboxes that there are not",
        "SELECT CAST(i.account AS text) AS about FROM inbox i WHERE NOT EXISTS (SELECT 1 FROM archive_peer p WHERE p.id \
         = i.peer)",
    ),
    rule(
        On::Sqlite,
        "entries of archives that are not found by their conversations",
        "SELECT CAST(e.account AS text) AS about FROM archive_entry e WHERE NOT EXISTS (SELECT 1 FROM \
         archive_conversation c WHERE c.account = e.account AND c.peer = e.peer AND c.seq = e.seq)",
    ),
    rule(
        On::Sqlite,
        "entries of conversations that are in no archive",
        "SELECT CAST(c.account AS text) AS about FROM archive_conversation c WHERE NOT EXISTS (SELECT 1 FROM \
         archive_entry e WHERE e.account = c.account AND e.seq = c.seq)",
    ),
    counted!(
        On::Both,
        "rooms whose number of messages is another than there are",
        "room" "id" "messages", "room_message c WHERE c.room"
    ),
    counted!(
        On::Both,
        "webhooks whose number of dead letters is another than there are",
        "webhook" "id" "letters", "dead_letter c WHERE c.webhook"
    ),
    counted!(
        On::Both,
        "domains whose number of links is another than there are",
        "link_domain" "domain" "links", "link c WHERE c.domain"
    ),
    rule(
        On::Both,
        "accounts whose files have another size than is counted",
        "SELECT CAST(t.account AS text) AS about FROM upload_account t WHERE t.bytes <> (SELECT coalesce(sum(c.bytes + \
         4096), 0) FROM upload c WHERE c.account = t.account)",
    ),
    rule(
        On::Both,
        "files that are not counted",
        "SELECT CAST(c.account AS text) AS about FROM upload c WHERE NOT EXISTS (SELECT 1 FROM upload_account t WHERE \
         t.account = c.account) OR NOT EXISTS (SELECT 1 FROM upload_domain t WHERE t.domain = c.domain)",
    ),
    rule(
        On::Both,
        "domains whose files have another size than is counted",
        "SELECT CAST(t.domain AS text) AS about FROM upload_domain t WHERE t.bytes <> (SELECT coalesce(sum(c.bytes + \
         4096), 0) FROM upload c WHERE c.domain = t.domain)",
    ),
    rule(
        On::Both,
        "notifications with another address than their accounts",
        "SELECT CAST(n.account AS text) AS about FROM notification n JOIN account a ON a.id = n.account WHERE n.domain \
         <> a.domain OR n.local <> a.local",
    ),
    rule(
        On::Both,
        "rows of reserved idempotency keys without their requests",
        "SELECT CAST(l.key AS text) AS about FROM idempotency_line l WHERE NOT EXISTS (SELECT 1 FROM idempotency i \
         WHERE i.key = l.key AND i.idempotency_key = l.idempotency_key)",
    ),
    rule(
        On::Both,
        "ends of broadcasts that there are not",
        "SELECT CAST(e.broadcast AS text) AS about FROM broadcast_end e WHERE NOT EXISTS (SELECT 1 FROM broadcast b \
         WHERE b.seq = e.broadcast)",
    ),
    counted!(
        On::Both,
        "cells whose number of devices is another than are placed in them",
        "cell" "name" "devices", "placement c WHERE c.cell"
    ),
    counted!(
        On::Both,
        "cells whose number of held requests is another than there are",
        "cell" "name" "held", "held c WHERE c.cell"
    ),
    rule(
        On::Both,
        "devices that are placed in cells that there are not",
        "SELECT p.cell AS about FROM placement p WHERE NOT EXISTS (SELECT 1 FROM cell c WHERE c.name = p.cell)",
    ),
    rule(
        On::Postgres,
        "events with numbers that are not given yet",
        "SELECT CAST(e.number AS text) AS about FROM event e WHERE e.number > (SELECT newest FROM event_number)",
    ),
    rule(
        On::Postgres,
        "webhooks that are ahead of all events",
        "SELECT CAST(w.id AS text) AS about FROM webhook w WHERE w.cursor > (SELECT newest FROM event_number)",
    ),
    rule(
        On::Sqlite,
        "webhooks that are ahead of all events",
        "SELECT CAST(w.id AS text) AS about FROM webhook w WHERE w.cursor > coalesce((SELECT seq FROM sqlite_sequence \
         WHERE name = 'event'), 0)",
    ),
    rule(
        On::Postgres,
        "broadcasts of a revision that is not given yet",
        "SELECT CAST(b.seq AS text) AS about FROM broadcast b WHERE b.revision > (SELECT newest FROM \
         broadcast_revision)",
    ),
    rule(
        On::Sqlite,
        "broadcasts of a revision that is not given yet",
        "SELECT CAST(b.seq AS text) AS about FROM broadcast b WHERE b.revision > (SELECT broadcast_revision FROM node)",
    ),
];
