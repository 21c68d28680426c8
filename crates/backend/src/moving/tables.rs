//! What becomes of each table when a store is copied between SQLite and PostgreSQL: the one list of it.

/// A table that is copied.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// Columns that name a row: it is read in their order, and a copy that was interrupted goes on behind the last row that it has.
    pub(crate) key: &'static [&'static str],
    /// Columns of either store that are not copied, and why.
    pub(crate) apart: &'static [(&'static str, &'static str)],
    /// Where SQLite has the same rows in another form: a query for them.
    pub(crate) sqlite_rows: Option<&'static str>,
    /// The statements by which SQLite takes a row, where it is not one for all columns.
    pub(crate) sqlite_inserts: &'static [&'static str],
    /// Rows of PostgreSQL as they are to be copied, where these are not the table's.
    pub(crate) postgres_rows: Option<&'static str>,
    /// Columns that only PostgreSQL has, and what is put there.
    pub(crate) postgres_adds: &'static [(&'static str, Added)],
}

/// What is put into a column that SQLite does not have.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Added {
    /// The name of the node that goes on with the store.
    NodeName,
    Text(&'static str),
    Int(i64),
}

const fn table(name: &'static str, key: &'static [&'static str]) -> Table {
    Table {
        name,
        key,
        apart: &[],
        sqlite_rows: None,
        sqlite_inserts: &[],
        postgres_rows: None,
        postgres_adds: &[],
    }
}

const CLAIM: &str = "a claim ends with the process that has it";

/// The tables that are copied: whatever another refers to before it.
pub(crate) const COPIED: &[Table] = &[
    Table {
        apart: &[
            ("rooms", "SQLite's count of its rooms: counted when all are there"),
            ("accounts", "the same of its accounts"),
            ("topics", "the same of its topics"),
        ],
        ..table("domain", &["id"])
    },
    table("domain_grant", &["domain"]),
    table("held_name", &["domain", "local"]),
    table("account", &["id"]),
    table("removal", &["account", "domain"]),
    table("topic", &["id"]),
    table("affiliation", &["topic", "jid"]),
    table("subscription", &["account", "topic"]),
    Table {
        apart: &[("seq", "items are found by their revisions")],
        ..table("item", &["topic", "revision"])
    },
    table("notification", &["seq"]),
    Table {
        apart: &[("run", "a part of SQLite's index; what is copied into it is one run")],
        ..table("trace", &["id"])
    },
    table("event", &["number"]),
    table("offline", &["seq"]),
    table("api_key", &["id"]),
    Table {
        apart: &[
            ("seq", "says which reservations are of this process, which none of them is"),
            ("node", "the same on PostgreSQL"),
            ("epoch", "the same on PostgreSQL"),
        ],
        postgres_adds: &[("node", Added::Text("")), ("epoch", Added::Int(0))],
        ..table("idempotency", &["key", "idempotency_key"])
    },
    table("idempotency_line", &["key", "idempotency_key", "block"]),
    table("operation", &["id"]),
    Table {
        apart: &[("owner", CLAIM), ("claimed", CLAIM), ("node", CLAIM)],
        ..table("webhook", &["id"])
    },
    table("dead_letter", &["webhook", "event"]),
    Table {
        apart: &[("node", "a node on SQLite is alone")],
        // Groups of several nodes become those of one.
        postgres_rows: Some(
            "(SELECT row_number() OVER (ORDER BY node, number) - 1 AS number, shard, shards, sessions, written, bytes FROM parked)",
        ),
        postgres_adds: &[("node", Added::NodeName)],
        ..table("parked", &["number"])
    },
    table("contact", &["account", "jid"]),
    table("blocked", &["account", "jid"]),
    table("privacy", &["account"]),
    table("archive_rule", &["account", "jid", "wanted"]),
    Table {
        // Where it was not noted whether a message has contents there is 2. It counts as read, which its entries say.
        sqlite_rows: Some(
            "(SELECT seq, received, sender, sender_peer, recipient, recipient_peer, stanza, min(contents, 1) AS contents
              FROM archive_message)",
        ),
        ..table("archive_message", &["seq"])
    },
    table("archive_peer", &["id"]),
    Table {
        sqlite_rows: Some(
            "(SELECT e.account AS account, e.seq AS seq, e.peer AS peer, c.kind AS kind FROM archive_entry e
              LEFT JOIN archive_conversation c ON c.account = e.account AND c.peer = e.peer AND c.seq = e.seq)",
        ),
        sqlite_inserts: &[
            "INSERT INTO archive_entry (account, seq, peer) VALUES (:account, :seq, :peer)",
            "INSERT INTO archive_conversation (account, peer, seq, kind) VALUES (:account, :peer, :seq, :kind)",
        ],
        ..table("archive_entry", &["account", "seq"])
    },
    table("archive", &["account"]),
    table("inbox", &["account", "peer"]),
    table("private", &["account", "ns", "name"]),
    table("account_node", &["id"]),
    table("account_node_item", &["node", "revision", "id"]),
    table("vcard", &["account"]),
    table("link_domain", &["domain"]),
    table("link", &["id"]),
    table("link_click", &["link"]),
    table("link_file", &["domain", "file"]),
    table("lease", &["name"]),
    table("last_available", &["account"]),
    table("room", &["id"]),
    table("room_member", &["room", "jid"]),
    table("room_vcard", &["room"]),
    table("room_message", &["seq"]),
    table("room_block", &["account", "is_room", "jid"]),
    table("invitation", &["id"]),
    table("upload", &["id"]),
    table("removable_upload", &["id", "attempt"]),
    table("upload_account", &["account"]),
    table("upload_domain", &["domain"]),
    table("broadcast", &["seq"]),
    table("broadcast_end", &["broadcast", "account"]),
    table("broadcast_given", &["broadcast", "counter"]),
    table("module", &["name", "hash"]),
    table("module_activation", &["name"]),
    table("push_registration", &["id"]),
    Table {
        apart: &[("owner", CLAIM), ("claimed_by", CLAIM)],
        // As when the process of a claim is gone.
        postgres_rows: Some(
            "(SELECT id, registration, about, version, message, notification, room_message,
                 CASE WHEN owner IS NULL THEN due ELSE 0 END AS due, has_failed FROM push)",
        ),
        ..table("push", &["id"])
    },
    table("push_room", &["room", "jid", "registration"]),
    table("push_step", &["notification", "registration"]),
    table("endpoint", &["id"]),
    table("act", &["id"]),
    table("cell", &["name"]),
    table("placement", &["device"]),
    table("held", &["seq"]),
];

/// Tables that are not copied, and what becomes of what is in them.
pub(crate) const NOT_COPIED: &[(&str, &str)] = &[
    ("sqlite_sequence", "SQLite's numbers that were given: PostgreSQL's sequences are set to them, and back"),
    ("event_number", "the same for events: SQLite has that number in sqlite_sequence"),
    ("broadcast_revision", "a column of SQLite's table `node`: set at the end"),
    (
        "node",
        "SQLite: two counters, of which one is `broadcast_revision` and one for caches of a process; PostgreSQL: processes, which are gone",
    ),
    ("node_epoch", "of PostgreSQL's processes: a number is not given twice in a database"),
    ("lane", "of PostgreSQL's processes"),
    ("schema", "each store's own"),
    ("store_migration", "how far a copy is; it goes when the copy is whole"),
    ("archive_conversation", "SQLite's second index of `archive_entry`: copied with it"),
    (
        "archive_fold",
        "how far SQLite's archive is in its tables: all is put there before a copy, and set behind the last message after one",
    ),
    ("archive_list", "entries of SQLite's archive that are not in its tables: none after all are put there"),
    ("run", "parts of SQLite's index of traces: what is copied is the first"),
];
