//! What each write costs in a store that is full, counted in steps of SQLite's machine: no more than in one that is nearly empty, but for the rows
//! that it changes. There is one writer for everybody, so a list that is read there is everybody's to wait for.

mod writes;

use super::archive_tail::{Fold, Newest, Tail};
use super::reservation::ReservationNumber;
use super::run::Run;
use super::transaction::{Reached, Transaction};
use super::{Options, file, schema};
use crate::rows::last::LastItems;
use carillon_core::form::encode;
use carillon_core::model::*;
use carillon_core::ports::store::WriteAsk;
use carillon_core::ports::store::accounts::*;
use carillon_core::ports::store::archive::*;
use carillon_core::ports::store::blocking::{ChangeBlockList, ChangePrivacyLists};
use carillon_core::ports::store::broadcasts::{
    AccountEnd, BroadcastBounds, BroadcastChange, ChangeBroadcast, CreateBroadcast, EndBroadcasts, GivenCount,
};
use carillon_core::ports::store::cells::{
    self, CellChange, ChangeCell, CreateCell, ExpireHeld, Hold, MoveDevice, Place, RemoveCell, Unplace,
};
use carillon_core::ports::store::domains::{
    ChangePolicy, DeleteDomain, NoteStored, PutDomain, SetPushTemplates,
};
use carillon_core::ports::store::idempotency::{LineDigest, NoteLines, Release, Remember, Reserve};
use carillon_core::ports::store::inbox::{ChangeConversation, EmptyBin};
use carillon_core::ports::store::items::{Publish, Purge, Retract};
use carillon_core::ports::store::keys::{CreateKey, DeleteKey, ExpireKey, NODE_KEYS_MAX, NoteKeyUse};
use carillon_core::ports::store::leases::{ReleaseLease, TakeLease};
use carillon_core::ports::store::links::{
    ChangeLink, CountClicks, CreateLink, LinkBounds, LinkClicks, LinkSecret, OpenNotifications, PutLinkFile,
};
use carillon_core::ports::store::nodes::{EditNode, EditNodes};
use carillon_core::ports::store::notifications::*;
use carillon_core::ports::store::offline::{DeleteOffline, StoreOffline};
use carillon_core::ports::store::parked::{ForgetParked, ParkedGroup, StoreParked};
use carillon_core::ports::store::private::{PrivateElement, StorePrivate};
use carillon_core::ports::store::push::{ClaimPushes, CommitPushes, DisablePush, EnablePush, PushCommit};
use carillon_core::ports::store::rooms::{
    ChangeRoomBlocks, ConfigureRoom, CreateRoom, DestroyRoom, EraseRoomArchive, KeepRoomMessage,
    ReplaceRoomMessage, RoomWake, SetRoomMembers, SetRoomSubject, SetRoomVcard, SweepRoomArchives,
};
use carillon_core::ports::store::roster::{ChangeSubscription, PutContact, RemoveContact};
use carillon_core::ports::store::subscriptions::{Subscribe, Unsubscribe};
use carillon_core::ports::store::topics::{ConfigureTopic, CreateTopic, DeleteTopic, SetAffiliations};
use carillon_core::ports::store::vcard::StoreVcard;
use carillon_core::ports::store::webhooks::*;
use carillon_core::ports::{Answer, Ask, Question};
use carillon_wire::jid::{BareJid, Jid};
use rusqlite::{Connection, ffi};
use std::collections::BTreeSet;
use std::sync::Arc;
use writes::{broadcast, create_room, writes};

const T: UnixMs = UnixMs(1_795_167_000_000);
const HERE: DomainId = DomainId(1);
const FEW: usize = 2;
const MANY: usize = 2000;

/// Steps per row that a write changes: rows of indexes, and what is looked up for it.
const PER_ROW: u64 = 200;

/// What a write may cost beside, in a full store, in those that it costs in an empty one.
const TIMES: u64 = 3;

/// Writes that count entries of an index, and how many at most: up to a bound that a setting or a constant is. Counting one takes [`PER_ENTRY`].
const COUNTED: &[(&str, u64, &str)] = &[
    ("StoreNotification", MANY as u64, "what waits for the account: `limits.pending_notifications`"),
    ("Subscribe", 2 * MANY as u64, "what the account follows: `pubsub.max_subscriptions`"),
    ("Unsubscribe", MANY as u64, "the same"),
    ("SetCredentials", MANY as u64, "the same"),
    ("SetAccountState", MANY as u64, "the same"),
    ("RevokeTokens", MANY as u64, "the same"),
    ("ImportAccounts", MANY as u64, "the same"),
    ("CreateTopic", MANY as u64, "what the account owns: `pubsub.max_owned`"),
    ("CreateRoom", MANY as u64, "what the account owns: `rooms_owned_max` of the domain's policy"),
    ("ChangeConversation", 2 * MANY as u64, "what is unread: 4,000"),
    ("CreateKey", MANY as u64, "the keys of the domain: `keys_max`"),
    ("CreateWebhook", MANY as u64, "the webhooks of the domain"),
    ("SweepArchives", 20, "messages, as many as are asked for"),
    ("ClaimWebhooks", MANY as u64, "the webhooks of the node, once for all of them"),
    ("TakeLease", MANY as u64, "the leases of the node: `LEASES_MAX`"),
    (
        "CreateInvitation",
        2 * MANY as u64,
        "the invitations of the domain and of the inviter: `invitations.per_domain`, `invitations.per_account`",
    ),
    ("RegisterEndpoint", MANY as u64, "the endpoints of the account: `push.endpoints_per_account`"),
    ("CreateBroadcast", 2 * MANY as u64, "what is open in the domain, a setting; and as in the next"),
    ("ChangeBroadcast", MANY as u64, "those who count how often it was given: shards of processes"),
    ("ClaimPushes", MANY as u64, "what the process has claimed and not settled yet"),
    ("CreateCell", MANY as u64, "the cells: `CELLS_MAX`"),
    ("StoreParked", MANY as u64, "the groups that are there: one process has some hundreds"),
];
const PER_ENTRY: u64 = 12;

/// A store with so many of everything that an account, a topic or a webhook has. What was written is taken back.
struct Filled {
    _folder: tempfile::TempDir,
    _lock: std::fs::File,
    db: Connection,
    last: LastItems,
    tail: Tail,
}

impl Filled {
    fn with(many: usize) -> Filled {
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options::new(folder.path().join("store.db"));
        let lock = file::claim(&options.path).expect("it is made");
        let mut db = file::connect_writer(&options).expect("it opens");
        schema::migrate(&mut db, &options.path).expect("it is new");
        db.execute_batch(&fill(many)).expect("it is filled");
        let (last, tail) = (LastItems::new(1 << 20), Tail::default());
        tail.make(&db, 0);
        Filled { _folder: folder, _lock: lock, db, last, tail }
    }

    /// The steps of a write, and the rows that it changes.
    fn cost(&self, ask: &WriteAsk) -> (u64, u64) {
        let db = &self.db;
        db.execute_batch("BEGIN").expect("begins");
        let (cost, _) = self.done(ask);
        db.execute_batch("ROLLBACK").expect("it is taken back");
        cost
    }

    /// The rows that a part of a removal changed; none if nothing was there any more.
    fn removed_rows(&self, ask: &WriteAsk) -> Option<u64> {
        let ((_, rows), answer) = self.done(ask);
        DeleteAccount::answer(answer).expect("it is done").ok().map(|_| rows)
    }

    /// Does it.
    fn done(&self, ask: &WriteAsk) -> ((u64, u64), Answer) {
        let db = &self.db;
        let reached = Reached {
            topic_changes: 0,
            run: Run::newest(db, 2048).expect("a run"),
            last_found: ReservationNumber::last(db).expect("a number"),
            newest_message: Newest::find(db).expect("a message"),
            fold: Fold::find(db).expect("a fold"),
        };
        let mut write = Transaction::new(db, &self.last, &self.tail, reached);
        let (rows, _) = (db.total_changes(), steps(db));
        let answer = ask.answer_by(&mut write).unwrap_or_else(|e| panic!("{}: {e}", ask.name()));
        ((steps(db), db.total_changes() - rows), answer)
    }
}

/// The steps of all statements of a connection since this was asked before.
#[expect(unsafe_code, reason = "the counters of all statements are asked of SQLite itself")]
pub(super) fn steps(db: &Connection) -> u64 {
    let mut steps = 0;
    // SAFETY: the connection is open, and its statements are not used by anybody else meanwhile.
    unsafe {
        let db = db.handle();
        let mut statement = ffi::sqlite3_next_stmt(db, std::ptr::null_mut());
        while !statement.is_null() {
            steps += ffi::sqlite3_stmt_status(statement, ffi::SQLITE_STMTSTATUS_VM_STEP, 1) as u64;
            statement = ffi::sqlite3_next_stmt(db, statement);
        }
    }
    steps
}

/// [`FILL`] for so many of everything, with the values that are kept in their binary form.
fn fill(many: usize) -> String {
    let blob = |bytes: Vec<u8>| {
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("x'{digits}'")
    };
    let rule = |n: usize| PrivacyRule {
        order: n as u32,
        about: RuleAbout::Jid(full(&format!("p{n}@example.org"))),
        denies: true,
        kinds: StanzaKinds::ALL,
    };
    // Bounded by its bytes, whatever else there is many of.
    let work = PrivacyList { name: "work".into(), rules: (0..20).map(rule).collect() };
    let lists = PrivacyLists { default: Some("home".into()), lists: vec![work] };
    FILL.replace("MANY", &many.to_string())
        .replace("ROOM_CONFIG", &blob(encode(&RoomConfig::default(), 0)))
        .replace("PRIVACY_LISTS", &blob(encode(&lists, 0)))
        .replace("BROADCAST_FORM", &blob(encode(&broadcast("b000000000000001"), 0)))
}

/// Alice has many of everything; `c1`, `c2` … are those she has to do with.
const FILL: &str = "
    INSERT INTO domain (id, name, sessions, registration, pubsub_create, sessions_max)
        VALUES (1, 'example.org', 0, 1, 0, 10);
    INSERT INTO domain_grant SELECT id, sessions, registration, pubsub_create, sessions_max, 1, 0, 0, 0, 0, 0, 100, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 FROM domain;
    CREATE TEMP TABLE n AS WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < MANY) SELECT n FROM n;
    INSERT INTO account (id, domain, local, created, record, contacts, requests, roster_bytes, archive, private_bytes, blocked, blocked_bytes,
            nodes, node_bytes)
        VALUES (1, 1, 'alice', 0, 9, MANY, 0, 20 * MANY, 8, 20 * MANY, MANY, 20 * MANY, MANY, 50 * MANY);
    INSERT INTO account (id, domain, local, created, record, contacts, roster_bytes) SELECT 1 + n, 1, 'c' || n, 0, 1, 1, 20 FROM n;
    INSERT INTO contact (account, jid, name, standing, listed) SELECT 1, 'c' || n || '@example.org', '', 3, 1 FROM n;
    INSERT INTO contact (account, jid, name, standing, listed) SELECT 1 + n, 'alice@example.org', '', 3, 1 FROM n;
    INSERT INTO blocked (account, jid) SELECT 1, 'b' || n || '@example.org' FROM n;
    INSERT INTO archive_rule (account, jid, wanted) SELECT 1, 'r' || n || '@example.org', n % 2 FROM n;
    INSERT INTO private (account, ns, name, xml) SELECT 1, 'n' || n, 'a', CAST('<a/>' AS BLOB) FROM n;
    INSERT INTO account_node (id, account, name, created, revision, bytes, items, title, access_model, publish_model, max_items,
            persist_items, send_last, notify_retract, notify_delete)
        SELECT n, 1, 'node' || n, 0, MANY, iif(n = 1, 20 * MANY, 5), iif(n = 1, MANY, 0), '', 0, 0, MANY, 1, 0, 0, 0 FROM n;
    INSERT INTO account_node_item (node, revision, id, published, payload) SELECT 1, n, 'i' || n, 0, x'01' FROM n;
    INSERT INTO offline (account, received, stanza) SELECT 1, 0, x'01' FROM n;
    INSERT INTO topic (id, domain, name, created, items, last, revision, title, access_model, publish_model, max_items, persist_items, send_last,
            notify_retract, notify_delete)
        SELECT n, 1, 't' || n, 0, iif(n = 1, MANY, 0), iif(n = 1, MANY, NULL), MANY, '', 0, 0, MANY, 1, 0, 0, 0 FROM n;
    INSERT INTO item (topic, revision, id, published, payload) SELECT 1, n, 'i' || n, 0, x'01' FROM n;
    INSERT INTO affiliation (topic, jid, affiliation) SELECT 1, 'c' || n || '@example.org', 3 FROM n;
    INSERT INTO affiliation (topic, jid, affiliation) SELECT n, 'alice@example.org', 4 FROM n;
    INSERT INTO subscription (account, topic, since) SELECT 1, n, 0 FROM n;
    INSERT INTO subscription (account, topic, since) SELECT 1 + n, 1, 0 FROM n;
    INSERT INTO notification (id, account, domain, local, audience, rank, accepted, stored, xml, payload)
        SELECT CAST(printf('%016d', n) AS BLOB), 1, 1, 'alice', 2, 1, 0, 0, 0, CAST('{}' AS BLOB) FROM n;
    INSERT INTO trace (id, domain, local, audience, rank, state, accepted, ended) SELECT CAST(printf('t%015d', n) AS BLOB), 1, 'alice', 2, 1, 4, 0, 9 FROM n;
    INSERT INTO api_key (id, hash, name, domain, scopes, created) SELECT n, CAST(printf('%032d', n) AS BLOB), 'k', 1, 1, 0 FROM n;
    INSERT INTO idempotency (key, idempotency_key, body_hash, since, reserved) SELECT 1, 'k' || n, zeroblob(32), 1795167000000, 1 FROM n;
    INSERT INTO idempotency_line (key, idempotency_key, block, digests) SELECT 1, 'k1', n, zeroblob(8) FROM n;
    INSERT INTO webhook (id, domain, url, states, secret, created, cursor) SELECT n, 1, 'https://a.example/', 1, zeroblob(32), 0, 0 FROM n;
    UPDATE webhook SET owner = 7, claimed = 1795168000000, letters = MANY WHERE id = 1;
    INSERT INTO dead_letter (webhook, event, failed, error, body) SELECT 1, n, 0, '', x'' FROM n;
    INSERT INTO act (at, key, key_name, what, outcome, request) SELECT 0, 1, 'k', 'w', 'o', 'r' FROM n;
    INSERT INTO lease (name, holder, until) SELECT 'l' || n, 'h' || n, 1795168000000 FROM n;
    INSERT INTO module (name, hash, pushed, code) VALUES ('filter', x'0101010101010101010101010101010101010101010101010101010101010101', 0, x'01');
    INSERT INTO module_activation (name, hash, config, base_config, percent, shadow, closed, since) VALUES ('filter', x'01', '', '', 100, 0, 0, 0);
    INSERT INTO parked (number, shard, shards, sessions, written, bytes) SELECT n, 0, 1, 1, 0, x'01' FROM n;
    INSERT INTO operation (id, outcome) SELECT CAST(printf('z%015d', n) AS BLOB), x'01' FROM n;
    INSERT INTO removal (account, domain, at) SELECT 1000000 + n, 1, 0 FROM n;
    INSERT INTO held_name (domain, local, until) SELECT 1, 'h' || n, 9000000000000 FROM n;
    INSERT INTO vcard (account, xml) VALUES (1, x'01');
    INSERT INTO archive_peer (id, account, jid) SELECT n, 1, 'c' || n || '@example.org' FROM n;
    INSERT INTO archive_message (seq, received, sender, sender_peer, recipient, recipient_peer, stanza, contents)
        SELECT n, 0, NULL, NULL, 1, 1, CAST('<message id=''m' || n || '''/>' AS BLOB), 1 FROM n;
    INSERT INTO archive_entry (account, seq, peer) SELECT 1, n, 1 FROM n;
    INSERT INTO archive_conversation (account, peer, seq, kind) SELECT 1, 1, n, 1 FROM n;
    INSERT INTO archive (account, messages, bytes) VALUES (1, MANY, 20 * MANY);
    INSERT INTO link_domain (domain, secret, links, bytes) VALUES (1, zeroblob(32), MANY, 40 * MANY);
    INSERT INTO link (id, domain, code, url, may_change, created, expires) SELECT n, 1, 'c' || n, 'u' || n, 0, 0, 9000000000000 FROM n;
    INSERT INTO link_click (link, clicks, last) SELECT n, 1, 0 FROM n;
    INSERT INTO invitation (domain, account, hash, registers, uses_max, created, expires)
        SELECT 1, 1, CAST(printf('%032d', n) AS BLOB), 1, 1, 0, 9000000000000 FROM n;
    INSERT INTO link_file (domain, file, body) VALUES (1, 0, x'01');
    INSERT INTO inbox (account, peer, last, unread, folder) SELECT 1, n, n, MANY, 0 FROM n;
    INSERT INTO upload (id, domain, account, name, media_type, bytes, expires, attempt)
        SELECT CAST(printf('%016d', n) AS BLOB), 1, 1, 'f', '', 1, 9000000000000, n FROM n;
    INSERT INTO removable_upload (id, attempt, remove_at) SELECT CAST(printf('r%015d', n) AS BLOB), n, 9000000000000 FROM n;
    INSERT INTO endpoint (id, account, resource, application, instance, created, expires)
        SELECT CAST(printf('e%015d', n) AS BLOB), 1, 'r' || n, zeroblob(32), zeroblob(32), 0, 9000000000000 FROM n;
    INSERT INTO room (id, domain, kind, name, created, title, is_found, config, messages, bytes, last, counted)
        SELECT n, 1, 0, 'r' || n, 0, '', 1, ROOM_CONFIG, MANY, 20 * MANY, MANY, MANY FROM n;
    INSERT INTO room_member (room, jid, affiliation, nick, reason) SELECT n, 'alice@example.org', 4, '', '' FROM n;
    INSERT INTO room_member (room, jid, affiliation, nick, reason) SELECT 1, 'c' || n || '@example.org', 2, '', '' FROM n;
    INSERT INTO room_vcard (room, photos, xml) SELECT n, zeroblob(20), x'01' FROM n;
    INSERT INTO room_message (seq, room, received, sender, stanza, counted)
        SELECT n, 1, 0, 'c1@example.org', CAST('<message id=''m' || n || '''/>' AS BLOB), n FROM n;
    INSERT INTO room_block (account, is_room, jid) SELECT 1, 0, 'b' || n || '@example.org' FROM n;
    UPDATE account SET room_blocks = MANY WHERE id = 1;
    INSERT INTO push_registration (id, account, name, kind, url, public_key, secret, shown, created)
        SELECT n, 1, 'app' || n, 1, 'https://push.example/', x'', x'', 0, 0 FROM n;
    INSERT INTO push_room (room, jid, registration, about) SELECT n, 'alice@example.org', n, 'r:r' || n || '@rooms.example.org' FROM n;
    INSERT INTO push_room (room, jid, registration, about) SELECT 1, 'c1@example.org', 2, 'r:r1@rooms.example.org';
    INSERT INTO push (id, registration, about, message, due, owner)
        SELECT n, 1, 'a' || n, n, iif(n % 2, 0, 1795168000000), iif(n % 2, NULL, 7) FROM n;
    INSERT INTO push_step (notification, registration, name, kind, requests, sent, answered, state)
        SELECT CAST('t000000000000001' AS BLOB), n, 'app' || n, 1, 1, 0, 0, 0 FROM n;
    INSERT INTO broadcast (seq, id, domain, open, expires, revision, bytes, acknowledged, form)
        SELECT n, CAST(printf('b%015d', n) AS BLOB), 1, 1, 9000000000000, n, 10, iif(n = 1, MANY, 0), BROADCAST_FORM FROM n;
    INSERT INTO broadcast_end (broadcast, account, at, by) SELECT 1, 1 + n, 0, 0 FROM n;
    INSERT INTO broadcast_given (broadcast, counter, given) SELECT 1, n, 1 FROM n;
    INSERT INTO privacy (account, lists) VALUES (1, PRIVACY_LISTS);
    INSERT INTO last_available (account, at) SELECT 1 + n, 0 FROM n;
    INSERT INTO cell (name, weight, url, secret, drain, rate, devices, held, held_bytes)
        SELECT 'c' || n, 1, 'https://c.example/', 's', 0, 1, iif(n = 1, MANY, 0), iif(n = 1, MANY, 0), iif(n = 1, 100 * MANY, 0) FROM n;
    INSERT INTO placement (device, cell, generation, moves_to) SELECT 'd' || n || '@example.org', 'c1', 2, iif(n = 1, 'c2', NULL) FROM n;
    INSERT INTO held (id, cell, series, device, path, body, expires, bytes)
        SELECT CAST(printf('%016d', n) AS BLOB), 'c1', 's', 'd1@example.org', '/', x'01', 9000000000000, 100 FROM n;
    UPDATE inbox SET folder = 2, moved = MANY + 1 WHERE peer = 2;
    UPDATE archive_fold SET folded = MANY;
    ANALYZE;
    UPDATE topic SET bytes = (SELECT coalesce(sum(length(CAST(i.id AS BLOB)) + length(i.payload)), 0) FROM item i WHERE i.topic = topic.id);
    UPDATE account SET (offline, offline_bytes) =
        (SELECT count(*), coalesce(sum(length(stanza)), 0) FROM offline o WHERE o.account = account.id);
";

fn jid(text: &str) -> BareJid {
    BareJid::new(text).expect("an address")
}

fn full(text: &str) -> Jid {
    Jid::new(text).expect("an address")
}

fn alice() -> Box<str> {
    "alice".into()
}

fn notification(n: u128) -> Notification {
    Notification {
        id: NotificationId(n),
        domain: HERE,
        to: jid("alice@example.org"),
        audience: Audience::Always,
        priority: Priority::Normal,
        expires: None,
        collapse_key: None,
        key: None,
        payload: Payload::Json("{}".into()),
        accepted: T,
        send_at: None,
    }
}

/// The id of one that waits.
fn waits() -> NotificationId {
    NotificationId(u128::from_be_bytes(*b"0000000000000001"))
}

fn item(id: &str) -> Item {
    Item {
        topic: TopicId(1),
        domain: HERE,
        name: "t1".into(),
        id: id.into(),
        publisher: None,
        published: T,
        payload: "<x/>".into(),
        revision: Revision(0),
    }
}

/// Tables that have one row per account, domain or node, or that no write reads.
const SINGLE: &[(&str, &str)] = &[
    ("archive", "one per account"),
    ("archive_fold", "one"),
    ("archive_list", "read at the start alone"),
    ("domain", "one per domain"),
    ("domain_grant", "one per domain"),
    ("link_domain", "one per domain"),
    ("link_file", "two per domain"),
    ("module", "the versions of the node"),
    ("module_activation", "the modules of the node"),
    ("node", "one"),
    ("privacy", "one per account, bounded in bytes"),
    ("run", "one for thousands of notifications"),
    ("upload_account", "one per account"),
    ("upload_domain", "one per domain"),
    ("vcard", "one per account, bounded in bytes"),
];

#[test]
fn every_table_is_filled() {
    let store = Filled::with(MANY);
    let named = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
    let mut tables = store.db.prepare(named).expect("it is open");
    let tables: Vec<String> =
        tables.query_map([], |row| row.get(0)).expect("tables").collect::<Result<_, _>>().expect("names");
    let rows = |table: &str| -> u32 {
        store.db.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).expect("a table")
    };
    let is_single = |table: &str| SINGLE.iter().any(|(single, _)| *single == table);
    let empty: Vec<_> =
        tables.iter().filter(|table| !is_single(table) && (rows(table) as usize) < MANY).collect();
    assert!(empty.is_empty(), "costs are compared between stores without rows in {empty:?}");
}

#[test]
fn no_write_reads_a_list() {
    let writes = writes();
    let tried: BTreeSet<&str> = writes.iter().map(WriteAsk::name).collect();
    assert_eq!(tried, WriteAsk::names().collect(), "a write is missing here");
    let (few, many) = (Filled::with(FEW), Filled::with(MANY));
    let mut too_much = Vec::new();
    for (number, write) in writes.iter().enumerate() {
        let ((small, _), (large, rows)) = (few.cost(write), many.cost(write));
        let counted = COUNTED.iter().find(|(name, ..)| *name == write.name()).map_or(0, |(_, most, _)| *most);
        let most = TIMES * small + PER_ROW * rows + PER_ENTRY * counted;
        if large > most {
            too_much
                .push(format!("{number} {}: {large} steps instead of {small}, {rows} rows", write.name()));
        }
    }
    assert!(too_much.is_empty(), "{too_much:#?}");
}

#[test]
fn what_is_counted_is_counted_up_to_its_bound() {
    let (few, many) = (Filled::with(FEW), Filled::with(MANY));
    let topic = CreateTopic {
        domain: HERE,
        name: "new".into(),
        config: TopicConfig::default(),
        affiliations: vec![(jid("alice@example.org"), Affiliation::Owner)],
        owned_max: 1,
        now: T,
    };
    for ask in [create_room("new", 1).into(), topic.into()] {
        let Ask::Write(write) = ask else { panic!("{ask:?}") };
        let ((small, _), (large, _)) = (few.cost(&write), many.cost(&write));
        assert!(large <= TIMES * small, "{}: {large} steps instead of {small}", write.name());
    }
}

/// What is removed in parts changes no more rows at once than it was asked to, but for some of the last that it took.
#[test]
fn a_part_changes_so_many_rows() {
    let store = Filled::with(MANY);
    // Of all conversations, and of all rooms.
    store
        .db
        .execute_batch("UPDATE inbox SET folder = 2, moved = MANY + 1; UPDATE room_member SET folder = 2, moved = MANY + 1"
            .replace("MANY", &MANY.to_string())
            .as_str())
        .expect("they are in the bin");
    let account = |rows_max| DeleteAccount { domain: HERE, local: alice(), now: T, held_until: T, rows_max };
    let bounds = BlockListBounds { addresses: 100_000, bytes: 1 << 30 };
    let edit = BlockListEdit::UnblockAll;
    let few = TopicConfig { max_items: 1, ..TopicConfig::default() };
    let (topic, room) = (TopicId(1), RoomId(1));
    let parts: [(Ask, u64); 9] = [
        (account(100).into(), 150),
        (account(1000).into(), 1500),
        (DeleteDomain { domain: HERE, now: T, rows_max: 100 }.into(), 150),
        // Of a topic and of its items.
        (Purge { topic, items_max: 100 }.into(), 102),
        (ConfigureTopic { topic, config: few, items_max: 100 }.into(), 103),
        (DeleteTopic { topic, rows_max: 100 }.into(), 105),
        (DestroyRoom { room, facts: Vec::new(), rows_max: 100 }.into(), 102),
        (EmptyBin { domain: HERE, local: alice(), max: 100 }.into(), 205),
        (ChangeBlockList { domain: HERE, local: alice(), edit, bounds }.into(), UNBLOCKED_MAX as u64 + 2),
    ];
    for (ask, most) in parts {
        let Ask::Write(write) = ask else { panic!("{ask:?}") };
        let (_, rows) = store.cost(&write);
        assert!(rows > 10 && rows <= most, "{}: {rows} rows", write.name());
    }
}

/// The same to the end: each part of an account, one after the other.
#[test]
fn an_account_of_much_is_removed_in_parts() {
    let store = Filled::with(MANY);
    let ask = Ask::from(DeleteAccount { domain: HERE, local: alice(), now: T, held_until: T, rows_max: 500 });
    let Ask::Write(write) = ask else { panic!("{ask:?}") };
    let mut parts = 0;
    while let Some(rows) = store.removed_rows(&write) {
        // Where a row goes, triggers change up to four others.
        assert!(rows <= 5 * 500, "{rows} rows in part {parts}");
        parts += 1;
    }
    assert!(parts > 40, "{parts}");
}

#[test]
fn a_write_of_many_costs_that_many() {
    let store = Filled::with(MANY);
    let block = |count: usize| {
        let jids = (0..count).map(|n| full(&format!("b{n}@example.org"))).collect();
        let bounds = BlockListBounds { addresses: 100_000, bytes: 1 << 30 };
        Ask::from(ChangeBlockList {
            domain: HERE,
            local: alice(),
            edit: BlockListEdit::Unblock(jids),
            bounds,
        })
    };
    let private = |count: usize| {
        let element =
            |n| PrivateElement { name: "a".into(), ns: format!("n{n}").into(), xml: Default::default() };
        let elements = (0..count).map(element).collect();
        Ask::from(StorePrivate { domain: HERE, local: alice(), elements, bytes_max: 1 << 30 })
    };
    let rules = |count: usize| {
        let always = (0..count).map(|n| full(&format!("r{n}@example.org"))).collect();
        let preferences = ArchivePreferences { default: ArchiveDefault::Never, always, never: Vec::new() };
        Ask::from(SetArchivePreferences { domain: HERE, local: alice(), preferences })
    };
    for of in [&block as &dyn Fn(usize) -> Ask, &private, &rules] {
        let cost = |count| match of(count) {
            Ask::Write(write) => store.cost(&write).0,
            other => panic!("{other:?}"),
        };
        let (none, ten, thousand) = (cost(0), cost(10), cost(1000));
        assert!(
            thousand - none <= 110 * (ten - none).max(10),
            "{thousand} instead of {ten}, {none} for none"
        );
    }
}
