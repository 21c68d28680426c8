//! What each write costs in a store that is full, counted in steps of SQLite's machine: no more than in one that is nearly empty, but for the rows
//! that it changes. There is one writer for everybody, so a list that is read there is everybody's to wait for.

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
    AccountEnd, BroadcastBounds, BroadcastChange, ChangeBroadcast, CreateBroadcast, EndBroadcasts, Given,
};
use carillon_core::ports::store::cells::{
    self, CellChange, ChangeCell, CreateCell, ExpireHeld, Hold, MoveDevice, Place, RemoveCell, Unplace,
};
use carillon_core::ports::store::domains::{ChangePolicy, DeleteDomain, NoteStored, PutDomain};
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
    ReplaceRoomMessage, RoomWake, SetRoomMembers, SetRoomSubject, SweepRoomArchives,
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
    INSERT INTO domain_grant SELECT id, sessions, registration, pubsub_create, sessions_max, 1, 0, 0, 0, 0, 0, 100, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 FROM domain;
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
    INSERT INTO room_message (seq, room, received, sender, stanza, counted)
        SELECT n, 1, 0, 'c1@example.org', CAST('<message id=''m' || n || '''/>' AS BLOB), n FROM n;
    INSERT INTO room_block (account, is_room, jid) SELECT 1, 0, 'b' || n || '@example.org' FROM n;
    UPDATE account SET room_blocks = MANY WHERE id = 1;
    INSERT INTO push_registration (id, account, name, kind, url, public_key, secret, shown, created)
        SELECT n, 1, 'app' || n, 1, 'https://push.example/', x'', x'', 0, 0 FROM n;
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

/// Each write there is, as its worst.
fn writes() -> Vec<WriteAsk> {
    let asks: Vec<Ask> = [
        of_domains(),
        of_accounts(),
        of_topics(),
        of_notifications(),
        of_keys(),
        of_webhooks(),
        of_nodes(),
        of_rosters(),
        of_privacy_lists(),
        of_chats(),
        of_links(),
        of_leases(),
        of_rooms(),
        of_pushes(),
        of_broadcasts(),
        of_cells(),
        crate::conformance::NOUNS.iter().flat_map(|noun| (noun.writes)(HERE)).collect(),
    ]
    .concat();
    let write = |ask| match ask {
        Ask::Write(ask) => ask,
        other => panic!("{other:?}"),
    };
    asks.into_iter().map(write).collect()
}

fn of_domains() -> Vec<Ask> {
    vec![
        PutDomain { name: "example.org".into(), policy: Policy::default() }.into(),
        ChangePolicy {
            name: "new.example".into(),
            was: None,
            granted: Policy::default(),
            policy: Policy::default(),
        }
        .into(),
        DeleteDomain { domain: HERE, rows_max: 1 }.into(),
        NoteStored { domain: HERE, bytes: 9 }.into(),
    ]
}

fn of_accounts() -> Vec<Ask> {
    let credentials = || Credentials { sha1: None, sha256: None };
    let create = |local: &str| CreateAccount {
        domain: HERE,
        local: local.into(),
        credentials: credentials(),
        is_in_band: true,
        now: T,
    };
    let imported = ImportedAccount { local: alice(), credentials: credentials() };
    vec![
        create("new").into(),
        create("h1").into(),
        ImportAccounts { domain: HERE, accounts: vec![imported], now: T }.into(),
        SetCredentials { domain: HERE, local: alice(), credentials: credentials() }.into(),
        SetAccountState { domain: HERE, local: alice(), state: AccountState::Disabled(T) }.into(),
        RevokeTokens { domain: HERE, local: alice(), agent: None }.into(),
        DeleteAccount { domain: HERE, local: alice(), now: T, held_until: T.plus(9), rows_max: u32::MAX }
            .into(),
    ]
}

fn of_topics() -> Vec<Ask> {
    let config = || TopicConfig { max_items: 100_000, ..TopicConfig::default() };
    let topic = TopicId(1);
    let affiliations = vec![(jid("alice@example.org"), Affiliation::Owner)];
    vec![
        CreateTopic {
            domain: HERE,
            name: "new".into(),
            config: config(),
            affiliations,
            owned_max: 100_000,
            now: T,
        }
        .into(),
        ConfigureTopic { topic, config: config() }.into(),
        SetAffiliations { topic, changes: vec![(jid("c1@example.org"), Affiliation::Owner)] }.into(),
        DeleteTopic { topic }.into(),
        Subscribe { topic: TopicId(2), domain: HERE, local: "c1".into(), max: 100_000, now: T }.into(),
        Subscribe { topic, domain: HERE, local: alice(), max: 100_000, now: T }.into(),
        Unsubscribe { topic, domain: HERE, local: alice() }.into(),
        Publish { item: item("new"), keep: 100_000, bytes_max: 1 << 30 }.into(),
        Publish { item: item("i1"), keep: 100_000, bytes_max: 1 << 30 }.into(),
        Retract { topic, item: "i1".into() }.into(),
        Purge { topic, items_max: u32::MAX }.into(),
    ]
}

fn of_notifications() -> Vec<Ask> {
    let change = NotificationChange {
        id: waits(),
        state: NotificationState::Acknowledged,
        sent: Some(T),
        at: T,
        acknowledged_by: Some(AcknowledgedBy::Receipt),
        reason: None,
    };
    let page = carillon_core::ports::Page { entries: 10, bytes: 1000 };
    vec![
        StoreNotification { notification: notification(1).into(), queue_max: 100_000, now: T, wake: None }
            .into(),
        StoreNotification {
            notification: Notification { collapse_key: Some("k".into()), ..notification(2) }.into(),
            queue_max: 100_000,
            now: T,
            wake: None,
        }
        .into(),
        EndNotifications { changes: vec![change] }.into(),
        CancelNotification { id: waits(), now: T }.into(),
        ClaimDue { now: T, until: T.plus(9), page }.into(),
        Sweep { now: T, forget: UnixMs(5), max: 100 }.into(),
        StoreOffline {
            domain: HERE,
            local: alice(),
            received: T,
            stanza: "<m/>".into(),
            expires: None,
            queue_max: 100_000,
            bytes_max: 1 << 30,
            wake: None,
        }
        .into(),
        DeleteOffline { domain: HERE, local: alice(), seqs: vec![1] }.into(),
    ]
}

fn of_keys() -> Vec<Ask> {
    let (key, name) = (KeyId(1), || Box::<str>::from("k1"));
    let digest = LineDigest { number: 1, digest: 1 };
    vec![
        CreateKey {
            hash: [9; 32],
            name: "k".into(),
            domain: Some(HERE),
            scopes: Scopes::of(&[Scope::Send]),
            now: T,
            expires: None,
            networks: Box::default(),
            certificates: Box::default(),
            node_keys_max: NODE_KEYS_MAX,
        }
        .into(),
        DeleteKey { id: KeyId(2) }.into(),
        ExpireKey { id: key, expires: Some(T) }.into(),
        NoteKeyUse { id: key, at: T }.into(),
        Reserve { key, idempotency_key: "new".into(), body_hash: [1; 32], kept_bytes_max: u64::MAX, now: T }
            .into(),
        NoteLines { key, idempotency_key: name(), lines: vec![digest], now: T }.into(),
        Remember { key, idempotency_key: name(), response: "{}".into() }.into(),
        Release { key, idempotency_key: name() }.into(),
    ]
}

fn of_webhooks() -> Vec<Ask> {
    let id = WebhookId(1);
    let group = ParkedGroup { number: 0, shard: 0, shards: 1, sessions: 1, written: T, bytes: "x".into() };
    vec![
        CreateWebhook {
            domain: Some(HERE),
            url: "https://b.example/".into(),
            wanted: EventFilter::ALL,
            contents: false,
            secret: WebhookSecret(Box::new([1; 32])),
            now: T,
        }
        .into(),
        UpdateWebhook {
            id,
            url: Some("https://b.example/".into()),
            types: None,
            states: None,
            contents: None,
            secret: None,
            status: None,
        }
        .into(),
        ClaimWebhooks { owner: 7, now: T, until: T.plus(9), passed: Vec::new() }.into(),
        CommitWebhook {
            id,
            owner: 7,
            progress: WebhookProgress { cursor: 2, ..WebhookProgress::default() },
            is_gone: false,
            letters: Vec::new(),
        }
        .into(),
        DeleteDeadLetters { webhook: id, events: vec![1] }.into(),
        DeleteWebhook { id }.into(),
        StoreParked { group, bytes_max: 1 << 30 }.into(),
        ForgetParked.into(),
    ]
}

fn of_nodes() -> Vec<Ask> {
    let edits = [
        nodes_edit("i1"),
        nodes_edit("new"),
        NodeEdit::Retract("i1".into()),
        NodeEdit::Configure(ConfigChange::default()),
        NodeEdit::Purge,
        NodeEdit::Delete,
    ];
    let many = EditNodes {
        domain: HERE,
        local: alice(),
        node: "node1".into(),
        edits: vec![nodes_edit("i2"), NodeEdit::Retract("i3".into())],
        bounds: NodeBounds { nodes: 100_000, items: 100_000, bytes: 1 << 30 },
        now: T,
    };
    let edit = |edit| EditNode {
        domain: HERE,
        local: alice(),
        node: "node1".into(),
        edit,
        bounds: NodeBounds { nodes: 100_000, items: 100_000, bytes: 1 << 30 },
        now: T,
    };
    [many.into()].into_iter().chain(edits.into_iter().map(|of| edit(of).into())).collect()
}

fn of_rosters() -> Vec<Ask> {
    let bounds = RosterBounds { contacts: 100_000, requests: 100_000, bytes: 1 << 30 };
    let (local, contact, name, groups) = (alice(), jid("new@example.org"), "".into(), Vec::new());
    let block = |edit| ChangeBlockList {
        domain: HERE,
        local: alice(),
        edit,
        bounds: BlockListBounds { addresses: 100_000, bytes: 1 << 30 },
    };
    vec![
        PutContact { domain: HERE, local, contact, name, groups, stand: None, bounds }.into(),
        RemoveContact { domain: HERE, local: alice(), contact: jid("c1@example.org"), other: Some(HERE) }
            .into(),
        ChangeSubscription {
            domain: HERE,
            local: alice(),
            contact: jid("c1@example.org"),
            other: HERE,
            action: SubscriptionAction::Unsubscribed,
            request: "<status/>".into(),
            bounds,
            by_lists: false,
        }
        .into(),
        block(BlockListEdit::Block(vec![full("new@example.org")])).into(),
        block(BlockListEdit::Unblock(vec![full("b1@example.org")])).into(),
        block(BlockListEdit::UnblockAll).into(),
    ]
}

fn of_privacy_lists() -> Vec<Ask> {
    let change = |edit| ChangePrivacyLists {
        domain: HERE,
        local: alice(),
        edit,
        bounds: PrivacyBounds { lists: 10, rules: 100_000, bytes: 1 << 30 },
        block_list: BlockListBounds { addresses: 100_000, bytes: 1 << 30 },
    };
    let put = |name: &str, about| {
        let rule = PrivacyRule { order: 1, about, denies: true, kinds: StanzaKinds::ALL };
        change(PrivacyEdit::Put(PrivacyList { name: name.into(), rules: vec![rule] }))
    };
    vec![
        put("new", RuleAbout::All).into(),
        // The default list is the block list.
        put("home", RuleAbout::Jid(full("b1@example.org"))).into(),
        change(PrivacyEdit::Default(Some("work".into()))).into(),
        change(PrivacyEdit::Default(Some("home".into()))).into(),
        change(PrivacyEdit::Default(None)).into(),
        change(PrivacyEdit::Remove("work".into())).into(),
        change(PrivacyEdit::Remove("home".into())).into(),
    ]
}

fn of_chats() -> Vec<Ask> {
    let message = |displayed: Option<&str>| KeepMessage {
        sender: Some(ArchiveSide { domain: HERE, local: alice(), peer: full("c1@example.org/x") }),
        recipient: Some(ArchiveSide { domain: HERE, local: "c1".into(), peer: full("alice@example.org/y") }),
        received: T,
        stanza: "<message/>".into(),
        has_contents: true,
        displayed: displayed.map(Into::into),
    };
    let private = |ns: &str, xml: &'static str| {
        let elements = vec![PrivateElement { name: "a".into(), ns: ns.into(), xml: xml.into() }];
        StorePrivate { domain: HERE, local: alice(), elements, bytes_max: 1 << 30 }
    };
    let change = ConversationChange { folder: Some(Folder::Archive), ..ConversationChange::default() };
    let preferences = ArchivePreferences {
        default: ArchiveDefault::Roster,
        always: vec![full("a@example.org")],
        never: Vec::new(),
    };
    vec![
        private("n1", "").into(),
        private("n1", "<b/>").into(),
        private("new", "<b/>").into(),
        StoreVcard { domain: HERE, local: alice(), xml: "<v/>".into() }.into(),
        message(None).into(),
        message(Some("m1")).into(),
        message(Some("nothing")).into(),
        SetArchivePreferences { domain: HERE, local: alice(), preferences }.into(),
        EraseArchive { domain: HERE, local: alice() }.into(),
        SweepArchives { now: T, after: AccountId(0), max: 10 }.into(),
        ChangeConversation { domain: HERE, local: alice(), with: jid("c1@example.org"), change }.into(),
        EmptyBin { domain: HERE, local: alice() }.into(),
        ChangeRoomBlocks {
            domain: HERE,
            local: alice(),
            changes: vec![(RoomBlock { is_room: false, jid: jid("new@example.org") }, true)],
            max: 100_000,
        }
        .into(),
    ]
}

fn of_links() -> Vec<Ask> {
    let bounds = LinkBounds { links: 1 << 20, bytes: 1 << 30 };
    let create = |codes: &[&str], url: &str| CreateLink {
        domain: HERE,
        codes: codes.iter().map(|code| (*code).into()).collect(),
        url: url.into(),
        may_change: false,
        expires: None,
        key: None,
        now: T,
        bounds,
    };
    let change = ChangeLink {
        domain: HERE,
        code: "c1".into(),
        url: Some("longer".into()),
        expires: Some(None),
        removed: Some(Some(T)),
        bounds,
    };
    let opened = Opened { at: T, agent: AgentClass::Other };
    let ended = NotificationId(u128::from_be_bytes(*b"t000000000000001"));
    let click = |id| Click { id, domain: HERE, opened };
    vec![
        LinkSecret { domain: HERE, fresh: [1; 32] }.into(),
        create(&["c1", "c2", "new"], "new").into(),
        create(&["c1", "c2"], "u2").into(),
        create(&["c1", "c2"], "new").into(),
        change.into(),
        PutLinkFile { domain: HERE, file: LinkFile::Apple, body: Some("{}".into()) }.into(),
        PutLinkFile { domain: HERE, file: LinkFile::Apple, body: None }.into(),
        CountClicks { clicks: vec![LinkClicks { link: LinkId(1), clicks: 1, last: T }] }.into(),
        OpenNotifications { clicks: vec![click(ended), click(waits())] }.into(),
    ]
}

fn of_leases() -> Vec<Ask> {
    let take = |name: &str| TakeLease {
        name: name.into(),
        holder: "h1".into(),
        now: T,
        until: T.plus(9),
        state: None,
    };
    let release = ReleaseLease { name: "l1".into(), holder: "h1".into() };
    vec![take("l1").into(), take("l2").into(), take("new").into(), release.into()]
}

fn of_rooms() -> Vec<Ask> {
    let room = RoomId(1);
    let said = |displayed: Option<&str>| KeepRoomMessage {
        room,
        received: T,
        sender: jid("alice@example.org"),
        stanza: "<message/>".into(),
        entry: RoomEntry::Counted,
        displayed: displayed.map(Into::into),
        wake: Some(Box::new(RoomWake {
            domain: HERE,
            mentioned: vec!["c1".into()],
            wake: Wake { at: T, topic: "r".into() },
        })),
        fact: None,
    };
    let subject = RoomSubject {
        nick: "alice".into(),
        by: jid("alice@example.org"),
        set: T,
        stanza: "<message/>".into(),
    };
    vec![
        create_room("new", 100_000).into(),
        // She owns more.
        create_room("new", 1).into(),
        create_room("r1", 100_000).into(),
        ConfigureRoom { room, config: RoomConfig::default(), version: 1, facts: Vec::new() }.into(),
        room_member("c1", RoomAffiliation::Owner).into(),
        room_member("c1", RoomAffiliation::None).into(),
        SetRoomSubject { room, subject: Some(Box::new(subject)), facts: Vec::new() }.into(),
        said(None).into(),
        said(Some("1")).into(),
        said(Some("nothing")).into(),
        ReplaceRoomMessage { room, id: ArchiveId(1), stanza: "<message/>".into(), facts: Vec::new() }.into(),
        EraseRoomArchive { room }.into(),
        SweepRoomArchives { now: T, after: RoomId(0), max: 10 }.into(),
        ChangeRoomBlocks {
            domain: HERE,
            local: alice(),
            changes: vec![(RoomBlock { is_room: false, jid: jid("b1@example.org") }, false)],
            max: 100_000,
        }
        .into(),
        DestroyRoom { room, facts: Vec::new() }.into(),
    ]
}

fn create_room(name: &str, owned_max: u32) -> CreateRoom {
    CreateRoom {
        domain: HERE,
        kind: RoomKind::Muc,
        name: name.into(),
        config: RoomConfig::default(),
        members: vec![RoomMember::new(jid("alice@example.org"), RoomAffiliation::Owner)],
        owned_max,
        rooms_max: 100_000,
        now: T,
        facts: Vec::new(),
    }
}

fn room_member(local: &str, affiliation: RoomAffiliation) -> SetRoomMembers {
    SetRoomMembers {
        room: RoomId(1),
        changes: vec![RoomMember::new(jid(&format!("{local}@example.org")), affiliation)],
        version: 1,
        facts: Vec::new(),
    }
}

fn of_pushes() -> Vec<Ask> {
    let enable = |node: &str| EnablePush {
        domain: HERE,
        local: alice(),
        node: node.into(),
        channel: PushChannel::WebPush(WebPushKeys {
            endpoint: "https://push.example/1".into(),
            p256dh: [4; 65],
            auth: PushSecret(vec![9; 16].into()),
        }),
        shown: PushShown::Whole,
        wakes: PushWakes::default(),
        now: T,
        per_account_max: 100_000,
    };
    let claim = |owner, held| ClaimPushes {
        owner,
        now: T,
        until: T.plus(9),
        held,
        page: carillon_core::ports::Page { entries: 10, bytes: 1 << 20 },
    };
    let commit = |outcome| PushCommit {
        id: PushId(2),
        version: 1,
        registration: RegistrationId(1),
        registered: UnixMs(0),
        domain: HERE,
        local: alice(),
        outcome,
        step: None,
    };
    let held = (0..MANY as u64).map(PushId).collect();
    vec![
        enable("app1").into(),
        enable("new").into(),
        claim(8, Vec::new()).into(),
        claim(7, Vec::new()).into(),
        claim(7, held).into(),
        CommitPushes { owner: 7, now: T, pushes: vec![commit(PushOutcome::Taken { at: T })] }.into(),
        CommitPushes { owner: 7, now: T, pushes: vec![commit(PushOutcome::Gone)] }.into(),
        DisablePush { domain: HERE, local: alice(), node: Some("app1".into()) }.into(),
        DisablePush { domain: HERE, local: alice(), node: None }.into(),
    ]
}

fn broadcast(id: &str) -> Broadcast {
    let id = id.as_bytes().try_into().expect("sixteen bytes");
    Broadcast {
        id: NotificationId(u128::from_be_bytes(id)),
        domain: HERE,
        audience: Audience::Always,
        priority: Priority::High,
        payload: Payload::Json("{}".into()),
        key: None,
        created: T,
        expires: UnixMs(9_000_000_000_000),
        topic: None,
        pace: BroadcastPace::default(),
        state: BroadcastState::Running,
        ended: None,
        revision: 1,
    }
}

fn of_broadcasts() -> Vec<Ask> {
    let bounds = BroadcastBounds { open: 100_000, bytes: 1 << 30 };
    let first = broadcast("b000000000000001").id;
    let change = |change| ChangeBroadcast { domain: HERE, id: first, change, now: T };
    let end =
        |account| AccountEnd { id: first, account: AccountId(account), at: T, by: AcknowledgedBy::Receipt };
    let steered = BroadcastChange::Steer { paused: Some(true), rate: None, not_before: None, window: None };
    vec![
        CreateBroadcast { broadcast: Arc::new(broadcast("new-new-new-new-")), bounds }.into(),
        CreateBroadcast { broadcast: Arc::new(broadcast("b000000000000001")), bounds }.into(),
        change(steered).into(),
        change(BroadcastChange::Abort).into(),
        EndBroadcasts { ends: vec![end(1), end(2)], given: vec![Given { id: first, counter: 1, given: 9 }] }
            .into(),
    ]
}

fn of_cells() -> Vec<Ask> {
    let device = || jid("d1@example.org");
    let endpoints = CellEndpoints { host: None, c2s_port: None, c2s_tls_port: None, websocket_url: None };
    let cell = CellRecord {
        name: "new".into(),
        weight: 1,
        url: "https://c.example/".into(),
        key: CellKey("s".into()),
        endpoints,
        drain: Draining::Off,
        rate: 1,
    };
    let step = |step| MoveDevice { device: device(), generation: 2, step };
    let request = HeldRequest {
        seq: 0,
        id: NotificationId(9),
        cell: "c1".into(),
        series: "s".into(),
        device: Some(device()),
        path: "/".into(),
        body: "x".into(),
        expires: T,
    };
    let change = CellChange { weight: Some(7), ..CellChange::default() };
    vec![
        CreateCell { cell }.into(),
        ChangeCell { name: "c1".into(), change }.into(),
        RemoveCell { name: "c1".into() }.into(),
        RemoveCell { name: "c2".into() }.into(),
        Place { device: jid("new@example.org"), cell: "c1".into() }.into(),
        step(MoveStep::Arrive).into(),
        step(MoveStep::GiveUp).into(),
        Unplace { device: device() }.into(),
        Hold { request, bytes_max: 1 << 30 }.into(),
        cells::Release { cell: "c1".into(), seqs: vec![1] }.into(),
        ExpireHeld { now: UnixMs(9_000_000_000_001), max: 10 }.into(),
    ]
}

fn nodes_edit(id: &str) -> NodeEdit {
    NodeEdit::Publish {
        id: id.into(),
        payload: "<x/>".into(),
        options: ConfigChange::default(),
        default: TopicConfig::default(),
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
    let account = |rows_max| DeleteAccount { domain: HERE, local: alice(), now: T, held_until: T, rows_max };
    let parts: [(Ask, u64); 4] = [
        (account(100).into(), 150),
        (account(1000).into(), 1500),
        (DeleteDomain { domain: HERE, rows_max: 100 }.into(), 150),
        // Of a topic and of its items.
        (Purge { topic: TopicId(1), items_max: 100 }.into(), 102),
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
        assert!(rows <= 750, "{rows} rows in part {parts}");
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
