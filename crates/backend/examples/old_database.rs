//! Writes the database that `tests/old_databases.rs` wants of each version of the schema, as SQL, with rows in every table:
//! `cargo run -p carillon-backend --example old_database > crates/backend/tests/old/version-N.sql`, before the migration that leads on from
//! version N is added.

use carillon_backend::sqlite::{Options, SqliteStore};
use carillon_core::model::*;
use carillon_core::ports::store::accounts::{CreateAccount, RevokeTokens, SetAccountState};
use carillon_core::ports::store::domains::PutDomain;
use carillon_core::ports::store::idempotency::{LineDigest, NoteLines, Remember, Reserve};
use carillon_core::ports::store::items::Publish;
use carillon_core::ports::store::keys::{CreateKey, NODE_KEYS_MAX};
use carillon_core::ports::store::notifications::{EndNotifications, NotificationChange, StoreNotification};
use carillon_core::ports::store::offline::StoreOffline;
use carillon_core::ports::store::subscriptions::Subscribe;
use carillon_core::ports::store::topics::CreateTopic;
use carillon_core::ports::{Ask, Question, Store};
use carillon_wire::jid::BareJid;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Result};
use std::sync::mpsc::sync_channel;

const T: UnixMs = UnixMs(1_795_167_000_000);
const HERE: DomainId = DomainId(1);
const THERE: DomainId = DomainId(2);
const NEWS: TopicId = TopicId(1);
const QUIET: TopicId = TopicId(2);

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("carillon.db");
    let store = SqliteStore::open(Options::new(&path)).expect("opens");
    domains_and_keys(&store);
    accounts(&store);
    topics(&store);
    notifications(&store);
    requests(&store);
    store.close();
    let db = Connection::open(&path).expect("opens");
    // A second run begins once thousands of notifications have ended.
    db.execute("INSERT INTO run (number, first) VALUES (1, ?1)", [id(6).0.to_be_bytes()]).expect("a run");
    db.execute("UPDATE trace SET run = 1 WHERE id = ?1", [id(6).0.to_be_bytes()]).expect("a trace");
    print!("{}", dump(&db).expect("is read"));
}

fn ask<Q: Question>(store: &dyn Store, question: Q) -> Q::Answer {
    said::<Q>(store, question.into())
}

/// Asks with the id of an operation, of which the number begins the random part.
fn once<Q: Question>(store: &dyn Store, operation: u128, question: Q) -> Q::Answer {
    said::<Q>(store, question.into().once(OperationId::new(T, operation << 64)))
}

fn said<Q: Question>(store: &dyn Store, ask: Ask) -> Q::Answer {
    let (sender, receiver) = sync_channel(1);
    store.ask(ask, Q::reply(move |answer| drop(sender.send(answer))));
    receiver.recv().expect("one answer").expect("the store is well")
}

fn id(n: u64) -> NotificationId {
    NotificationId::new(T, 3, n)
}

fn jid(text: &str) -> BareJid {
    BareJid::new(text).expect("an address")
}

// ---- what is in it

fn domains_and_keys(store: &dyn Store) {
    for (name, sessions, registration, pubsub_create, sessions_max) in [
        ("example.org", SessionPolicy::Single, true, PubsubCreate::Admin, 3),
        ("other.example", SessionPolicy::Multi, false, PubsubCreate::Any, 20),
    ] {
        let messages_durable = registration;
        let resumption_ms_max = 60_000 * sessions_max as u32;
        let policy = Policy {
            sessions,
            registration,
            account_management: true,
            pubsub_create,
            sessions_max,
            messages_durable,
            resumption_ms_max,
            archive: registration,
            archive_days: sessions_max.into(),
            archive_messages_max: 1000,
            archive_bytes_max: 1 << 33,
            keys_max: 100,
            other_domains: registration,
            requests_per_second: 0,
            stanzas_per_second: 0,
            bytes_per_second: 0,
            rooms_create: RoomsCreate::Any,
            rooms_owned_max: 100,
            rooms_max: 1000,
            accounts_max: 0,
            topics_max: 0,
            topics_owned_max: 0,
            subscriptions_max: 0,
            sessions_total_max: 0,
            bytes_out_per_second: 0,
            stored_bytes_max: 0,
            room_events: RoomEvents::Off,
            room_archive_days: 0,
        };
        ask(store, PutDomain { name: name.into(), policy });
    }
    for (hash, name, domain, scope, now) in
        [(7, "everything", None, Scope::Admin, T), (8, "of a domain", Some(HERE), Scope::Send, T.plus(1))]
    {
        ask(
            store,
            CreateKey {
                hash: [hash; 32],
                name: name.into(),
                domain,
                scopes: Scopes::of(&[scope]),
                expires: None,
                networks: Box::default(),
                certificates: Box::default(),
                node_keys_max: NODE_KEYS_MAX,
                now,
            },
        );
    }
}

fn accounts(store: &dyn Store) {
    let keys = |iterations, salt, size: usize, first: u8| ScramKeys {
        salt: Box::from([salt; 16]),
        iterations,
        stored_key: vec![first; size].into(),
        server_key: vec![first + 1; size].into(),
    };
    let (sha1, sha256) = (keys(4096, 1, 20, 2), keys(10_000, 4, 32, 5));
    let both = Credentials { sha1: Some(sha1), sha256: Some(sha256.clone()) };
    let one = Credentials { sha1: None, sha256: Some(sha256) };
    for (n, domain, local, credentials) in
        [(0, HERE, "alice", &both), (1, HERE, "bob", &one), (2, THERE, "alice", &both)]
    {
        let create = CreateAccount {
            domain,
            local: local.into(),
            credentials: credentials.clone(),
            is_in_band: false,
            now: T.plus(n),
        };
        once(store, u128::from(n) + 1, create);
    }
    let state = AccountState::Disabled(T.plus(5));
    ask(store, SetAccountState { domain: HERE, local: "bob".into(), state }).expect("bob is there");
    for agent in [None, None, Some(AgentId(9))] {
        ask(store, RevokeTokens { domain: HERE, local: "alice".into(), agent });
    }
    for (n, text) in [(1, "one"), (2, "two")] {
        let stanza = format!("<message xmlns='jabber:client' id='{n}'><body>{text}</body></message>").into();
        let (local, received) = ("alice".into(), T.plus(8 + n));
        ask(
            store,
            StoreOffline {
                domain: HERE,
                local,
                received,
                stanza,
                expires: None,
                queue_max: 9,
                bytes_max: u64::MAX,
                wake: None,
            },
        );
    }
}

fn topics(store: &dyn Store) {
    let news = TopicConfig {
        title: "The news".to_owned(),
        access_model: Access::Open,
        publish_model: PublishModel::Subscribers,
        max_items: 10,
        persist_items: true,
        send_last_published_item: SendLast::OnSubAndPresence,
        notify_retract: true,
        notify_delete: false,
        deliver_payloads: true,
    };
    let quiet = TopicConfig {
        title: String::new(),
        access_model: Access::Whitelist,
        publish_model: PublishModel::Publishers,
        max_items: 1,
        persist_items: false,
        send_last_published_item: SendLast::Never,
        notify_retract: false,
        notify_delete: true,
        deliver_payloads: true,
    };
    let of_news = vec![
        (jid("alice@example.org"), Affiliation::Owner),
        (jid("mallory@example.org"), Affiliation::Outcast),
    ];
    let of_quiet = vec![(jid("bob@example.org"), Affiliation::Member)];
    for (n, name, config, affiliations) in [(0, "news", news, of_news), (1, "quiet", quiet, of_quiet)] {
        let (name, now) = (name.into(), T.plus(n));
        ask(store, CreateTopic { domain: HERE, name, config, affiliations, owned_max: 9, now });
    }
    for (n, topic, local) in [(0, NEWS, "alice"), (1, QUIET, "alice"), (2, NEWS, "bob")] {
        ask(store, Subscribe { topic, domain: HERE, local: local.into(), max: 9, now: T.plus(n) });
    }
    for (n, id, publisher) in [(1, "first", None), (2, "second", Some(jid("bob@example.org")))] {
        let item = Item {
            topic: NEWS,
            domain: HERE,
            name: "news".into(),
            id: id.into(),
            revision: Revision(0),
            publisher,
            published: T.plus(2 + n),
            payload: format!("<p xmlns='urn:p'>{n}</p>").into(),
        };
        once(store, 10 + u128::from(n), Publish { item, keep: 10, bytes_max: u64::MAX });
    }
}

fn notifications(store: &dyn Store) {
    let notification = |n: u64| Notification {
        id: id(n),
        domain: HERE,
        to: jid("alice@example.org"),
        audience: Audience::Always,
        priority: Priority::Normal,
        expires: None,
        collapse_key: None,
        key: None,
        payload: Payload::Json(format!("{{\"n\":{n}}}").into()),
        accepted: T.plus(n),
        send_at: None,
    };
    let keep = |now, notification: Notification| {
        ask(store, StoreNotification { notification: notification.into(), queue_max: 1000, now, wake: None });
    };
    let change = |n, state, sent, at| NotificationChange {
        id: id(n),
        state,
        sent,
        at,
        acknowledged_by: None,
        reason: None,
    };
    let end = |change| ask(store, EndNotifications { changes: vec![change] });
    let key = Some("key".into());
    let sender = Some(KeyId(2));
    keep(
        T.plus(5),
        Notification {
            key: sender,
            expires: Some(T.plus(100)),
            collapse_key: key.clone(),
            ..notification(5)
        },
    );
    end(NotificationChange {
        acknowledged_by: Some(AcknowledgedBy::StreamManagement),
        ..change(5, NotificationState::Acknowledged, Some(T.plus(6)), T.plus(7))
    });
    keep(T.plus(6), Notification { audience: Audience::Active, ..notification(6) });
    end(NotificationChange {
        reason: Some(DropReason::NotConnected),
        ..change(6, NotificationState::Dropped, None, T.plus(8))
    });
    keep(T.plus(1), notification(1));
    keep(
        T.plus(2),
        Notification {
            priority: Priority::High,
            expires: Some(T.plus(86_400_000)),
            collapse_key: key,
            key: sender,
            payload: Payload::Xml("<p xmlns='urn:p'/>".into()),
            ..notification(2)
        },
    );
    end(change(2, NotificationState::Sent, Some(T.plus(3)), T.plus(3)));
    let send_at = Some(T.plus(60_000));
    keep(T.plus(3), Notification { priority: Priority::Low, send_at, ..notification(3) });
    let to = jid("bob@example.org");
    keep(T.plus(4), Notification { to, audience: Audience::Connected, send_at, ..notification(4) });
    // The clock was set back between these.
    for (n, accepted) in [(7, 20), (8, 10)] {
        let (to, accepted) = (jid("alice@other.example"), T.plus(accepted));
        keep(accepted, Notification { domain: THERE, to, accepted, ..notification(n) });
    }
}

fn requests(store: &dyn Store) {
    for idempotency_key in ["order-1", "lines"].map(Box::<str>::from) {
        ask(
            store,
            Reserve { key: KeyId(2), idempotency_key, body_hash: [1; 32], kept_bytes_max: u64::MAX, now: T },
        );
    }
    let response = "202 {\"id\": \"é\"}".into();
    ask(store, Remember { key: KeyId(2), idempotency_key: "order-1".into(), response });
    let lines = [1, 2, 300].map(|number| LineDigest { number, digest: 1000 + number }).into();
    ask(store, NoteLines { key: KeyId(2), idempotency_key: "lines".into(), lines, now: T });
}

// ---- how it is written

/// The database as SQL.
fn dump(db: &Connection) -> Result<String> {
    let version: u32 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let owner: u32 = db.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let mut out = format!(
        "-- A database as the store of version {version} of the schema wrote it, with rows in every table. Never changed.\n\
         PRAGMA application_id = {owner};\nPRAGMA user_version = {version};\nPRAGMA foreign_keys = OFF;\nBEGIN TRANSACTION;\n"
    );
    // A trigger comes after the rows, which it is not about. Names that begin so are SQLite's own.
    let mut query = db.prepare(
        "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'
         ORDER BY type = 'trigger', type = 'index', name",
    )?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let (kind, name): (String, String) = (row.get(0)?, row.get(1)?);
        out += &format!("{};\n", row.get::<_, String>(2)?);
        if kind == "table" {
            insert_rows(&mut out, db, &name)?;
        }
    }
    out += "DELETE FROM sqlite_sequence;\n";
    insert_rows(&mut out, db, "sqlite_sequence")?;
    Ok(out + "COMMIT;\n")
}

fn insert_rows(out: &mut String, db: &Connection, table: &str) -> Result<()> {
    let mut query = db.prepare(&format!("SELECT * FROM {table}"))?;
    let columns = query.column_count();
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let values =
            (0..columns).map(|column| row.get_ref(column).map(literal)).collect::<Result<Vec<_>>>()?;
        *out += &format!("INSERT INTO {table} VALUES ({});\n", values.join(", "));
    }
    Ok(())
}

fn literal(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => "NULL".to_owned(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(text) => format!("'{}'", String::from_utf8_lossy(text).replace('\'', "''")),
        ValueRef::Blob(bytes) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
            format!("X'{digits}'")
        }
    }
}
