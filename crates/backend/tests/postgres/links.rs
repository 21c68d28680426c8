//! Links and clicks wait for no write of others.

use crate::commits::{T, ask, ground};
use crate::server::{Database, server};
use carillon_backend::postgres::PostgresStore;
use carillon_core::model::*;
use carillon_core::ports::store::links::{
    ChangeLink, ChangeLinkAnswer, CountClicks, CreateLink, CreateLinkAnswer, LinkBounds, LinkClicks,
    LinkSecret, OpenNotifications, PutLinkFile,
};
use carillon_core::ports::store::notifications::{StoreNotification, StoreNotificationAnswer};
use carillon_wire::jid::BareJid;
use std::sync::Arc;

const BOUNDS: LinkBounds = LinkBounds { links: 9, bytes: 1000 };

/// Refuses what is written while the lock of the whole store is held.
const GUARD: &str = "CREATE FUNCTION guard() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF EXISTS (SELECT 1 FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'
                AND (classid, objid) = (0, 0) AND mode = 'ExclusiveLock') THEN
            RAISE EXCEPTION 'everything is locked';
        END IF;
        RETURN NULL;
    END $$;
    CREATE TRIGGER guard AFTER INSERT OR UPDATE ON link FOR EACH STATEMENT EXECUTE FUNCTION guard();
    CREATE TRIGGER guard AFTER INSERT OR UPDATE ON link_domain FOR EACH STATEMENT EXECUTE FUNCTION guard();
    CREATE TRIGGER guard AFTER INSERT OR UPDATE ON link_file FOR EACH STATEMENT EXECUTE FUNCTION guard();
    CREATE TRIGGER guard AFTER INSERT OR UPDATE ON link_click FOR EACH STATEMENT EXECUTE FUNCTION guard();
    CREATE TRIGGER guard AFTER UPDATE ON trace FOR EACH STATEMENT EXECUTE FUNCTION guard();";

fn notification(domain: DomainId) -> StoreNotification {
    let notification = Notification {
        id: NotificationId(7),
        domain,
        to: BareJid::new("u1@example.org").expect("an address"),
        audience: Audience::Always,
        priority: Priority::Normal,
        expires: None,
        collapse_key: None,
        key: None,
        payload: Payload::Json("{}".into()),
        accepted: T,
        send_at: None,
    };
    StoreNotification { notification: Arc::new(notification), queue_max: 9, now: T, wake: None }
}

#[test]
fn links_and_clicks_do_not_lock_the_store() {
    let database = Database::new();
    let store = PostgresStore::open(server().options(&database.name)).expect("opens");
    let domain = ground(&store);
    let stored = ask(&store, notification(domain)).expect("it is done");
    assert!(matches!(stored, StoreNotificationAnswer::Stored { .. }), "{stored:?}");
    server().batch(&database.name, GUARD);
    ask(&store, LinkSecret { domain, fresh: [1; 32] }).expect("it is done").expect("the domain is there");
    let create = CreateLink {
        domain,
        codes: vec!["abc".into()],
        url: "https://example.com/".into(),
        may_change: true,
        expires: None,
        key: None,
        now: T,
        bounds: BOUNDS,
    };
    let Ok(CreateLinkAnswer::Created(link)) = ask(&store, create) else { panic!("it is made") };
    let change = ChangeLink {
        domain,
        code: "abc".into(),
        url: Some("https://example.com/2".into()),
        expires: None,
        removed: None,
        bounds: BOUNDS,
    };
    assert!(matches!(ask(&store, change), Ok(ChangeLinkAnswer::Link(_))));
    let file = PutLinkFile { domain, file: LinkFile::Apple, body: Some("{}".into()) };
    ask(&store, file).expect("it is done").expect("the domain is there");
    ask(&store, CountClicks { clicks: vec![LinkClicks { link: link.id, clicks: 1, last: T }] })
        .expect("it is done");
    // It ends what waits, and the second click finds only what is known of it.
    let click = Click { id: NotificationId(7), domain, opened: Opened { at: T, agent: AgentClass::Mobile } };
    for _ in 0..2 {
        assert_eq!(ask(&store, OpenNotifications { clicks: vec![click] }), Ok(vec![NotificationId(7)]));
    }
    // Another test has the database next.
    server().batch(&database.name, "DROP FUNCTION guard() CASCADE");
}
