//! Rosters, and the subscriptions between accounts.

use super::ground::*;
use bytes::Bytes;
use carillon_core::model::*;
use carillon_core::ports::Store;
use carillon_core::ports::store::blocking::ChangeBlockList;
use carillon_wire::jid::Jid;

pub(super) const BOUNDS: RosterBounds = RosterBounds { contacts: 100, requests: 100, bytes: 100_000 };

pub(super) fn put(domain: DomainId, local: &str, contact: &str, name: &str) -> PutContact {
    let (local, contact, name) = (local.into(), jid(contact), name.into());
    let groups = vec!["Friends".into(), "Läufer".into()];
    PutContact { domain, local, contact, name, groups, stand: None, bounds: BOUNDS }
}

pub(super) fn says(
    domain: DomainId,
    local: &str,
    contact: &str,
    action: SubscriptionAction,
) -> ChangeSubscription {
    let (local, contact) = (local.into(), jid(contact));
    let request = Bytes::from_static(b"<status>hi</status>");
    ChangeSubscription {
        domain,
        local,
        contact,
        other: domain,
        action,
        request,
        bounds: BOUNDS,
        by_lists: false,
    }
}

/// Has one account see the presence of another.
pub(super) fn subscribe(store: &dyn Store, domain: DomainId, one: &str, other: &str) {
    let address = |local: &str| format!("{local}@example.org");
    both_sides(store, says(domain, one, &address(other), SubscriptionAction::Subscribe));
    both_sides(store, says(domain, other, &address(one), SubscriptionAction::Subscribed));
}

pub(super) fn remove(domain: DomainId, local: &str, contact: &str) -> RemoveContact {
    RemoveContact { domain, local: local.into(), contact: jid(contact), other: Some(domain) }
}

fn read(store: &dyn Store, domain: DomainId, local: &str) -> Option<Box<Record>> {
    ask(
        store,
        ReadRecord {
            domain,
            local: local.into(),
            parts: RecordParts { roster: true, blocked: true, nodes: true, privacy: true },
            about: Vec::new(),
        },
    )
}

pub(super) fn record(store: &dyn Store, domain: DomainId, local: &str) -> Record {
    answer!(read(store, domain, local), Some(record) => *record)
}

pub(super) fn both_sides(store: &dyn Store, asked: ChangeSubscription) -> BothSides {
    answer!(ask(store, asked), ChangeSubscriptionAnswer::Changed(both) => *both)
}

fn ground(store: &dyn Store) -> DomainId {
    let domain = domain(store);
    account(store, domain, "alice");
    account(store, domain, "bob");
    domain
}

pub(super) fn are_empty_and_of_generation_0_at_first(store: &dyn Store) {
    let domain = ground(store);
    let account = identity(store, domain, "alice").account;
    let expected = Record {
        account,
        generation: Generation(0),
        roster: Roster::default(),
        blocked: Vec::new(),
        nodes: Vec::new(),
        privacy: None,
    };
    assert_eq!(record(store, domain, "alice"), expected);
    assert_eq!(login(store, domain, "alice").record, Generation(0));
    assert_eq!(read(store, domain, "nobody"), None);
    assert_eq!(ask(store, put(domain, "nobody", "bob@example.org", "")), PutContactAnswer::NoAccount);
    assert_eq!(ask(store, remove(domain, "nobody", "bob@example.org")), RemoveContactAnswer::NoAccount);
    let subscribe = says(domain, "nobody", "bob@example.org", SubscriptionAction::Subscribe);
    assert_eq!(ask(store, subscribe), ChangeSubscriptionAnswer::NoAccount);
}

pub(super) fn hold_what_was_put(store: &dyn Store) {
    let domain = ground(store);
    // Those of other servers, too.
    for (contact, name) in
        [("bob@example.org", "Bob"), ("zoe@elsewhere.example", ""), ("ä@example.org", "é\u{1F514}")]
    {
        done(store, put(domain, "alice", contact, name));
    }
    done(store, put(domain, "alice", "bob@example.org", "Robert"));
    let found = record(store, domain, "alice");
    assert_eq!((found.generation, found.roster.version), (Generation(4), Generation(4)));
    let names: Vec<_> = found.roster.contacts.iter().map(|c| (c.jid.as_str(), &*c.name)).collect();
    assert_eq!(
        names,
        [("bob@example.org", "Robert"), ("zoe@elsewhere.example", ""), ("ä@example.org", "é\u{1F514}")]
    );
    assert!(
        found
            .roster
            .contacts
            .iter()
            .all(|c| c.is_listed && c.groups.len() == 2 && c.standing == Standing::default())
    );
    assert_eq!(login(store, domain, "alice").record, Generation(4));
    // Only what was asked for.
    let nothing = ask(
        store,
        ReadRecord { domain, local: "alice".into(), parts: RecordParts::default(), about: Vec::new() },
    );
    answer!(nothing, Some(record) => assert_eq!((record.generation, record.roster), (Generation(4), Roster::default())));
}

pub(super) fn are_imported_with_where_subscriptions_stand(store: &dyn Store) {
    let domain = ground(store);
    let both = Standing { to: true, from: true, ..Standing::default() };
    let asks = Standing { pending_out: true, approved: true, ..Standing::default() };
    for stand in [both, both, asks] {
        done(store, PutContact { stand: Some(stand), ..put(domain, "alice", "bob@example.org", "Bob") });
        let found = record(store, domain, "alice").roster.contacts;
        assert_eq!(found.iter().map(|contact| contact.standing).collect::<Vec<_>>(), [stand]);
    }
    // Another name changes nothing of that, and the other side says nothing.
    done(store, put(domain, "alice", "bob@example.org", "Robert"));
    assert_eq!(record(store, domain, "alice").roster.contacts[0].standing, asks);
    assert_eq!(record(store, domain, "bob").roster.contacts, []);
}

pub(super) fn are_looked_up(store: &dyn Store) {
    let domain = ground(store);
    for contact in ["bob@example.org", "zoe@elsewhere.example", "eve@example.org"] {
        done(store, put(domain, "alice", contact, "name"));
    }
    let jid = |text: &str| Jid::new(text).expect("an address");
    let list =
        ["bob@example.org/phone", "elsewhere.example", "other.example", "x.example/phone", "x.example"];
    let edit = BlockListEdit::Block(list.map(jid).to_vec());
    let bounds = BlockListBounds { addresses: 10, bytes: 1000 };
    ask(store, ChangeBlockList { domain, local: "alice".into(), edit, bounds });
    let read = |about: &[&str]| {
        let parts = RecordParts { roster: true, blocked: true, nodes: false, privacy: false };
        let about = about.iter().map(|text| jid(text)).collect();
        let record =
            ask(store, ReadRecord { domain, local: "alice".into(), parts, about }).expect("a record");
        assert_eq!(record.generation, Generation(4));
        let contacts: Vec<String> = record.roster.contacts.iter().map(|c| c.jid.to_string()).collect();
        let blocked: Vec<String> = record.blocked.iter().map(Jid::to_string).collect();
        (contacts.join(" "), blocked.join(" "))
    };
    let of = |contacts: &str, blocked: &str| (contacts.to_owned(), blocked.to_owned());
    assert_eq!(read(&["bob@example.org/phone"]), of("bob@example.org", "bob@example.org/phone"));
    assert_eq!(read(&["bob@example.org/desk"]), of("bob@example.org", ""));
    assert_eq!(read(&["carol@x.example/phone"]), of("", "x.example x.example/phone"));
    let many = ["zoe@elsewhere.example/r", "zoe@elsewhere.example", "eve@example.org", "nobody@example.org"];
    assert_eq!(read(&many), of("eve@example.org zoe@elsewhere.example", "elsewhere.example"));
}

pub(super) fn tell_the_generation_before_and_after(store: &dyn Store) {
    let domain = ground(store);
    let mut known = (Generation(0), Generation(0));
    let mut note = |both: BothSides| {
        if let Some(own) = both.own {
            assert_eq!(
                (own.account.as_str(), own.before, own.after.0),
                ("alice@example.org", known.0, known.0.0 + 1)
            );
            known.0 = own.after;
        }
        if let Some(other) = both.other {
            assert_eq!(
                (other.account.as_str(), other.before, other.after.0),
                ("bob@example.org", known.1, known.1.0 + 1)
            );
            known.1 = other.after;
        }
    };
    let own = answer!(ask(store, put(domain, "alice", "bob@example.org", "")), PutContactAnswer::Put(change) => *change);
    note(BothSides { own: Some(own), ..BothSides::default() });
    for action in
        [SubscriptionAction::Subscribe, SubscriptionAction::Subscribe, SubscriptionAction::Unsubscribe]
    {
        note(both_sides(store, says(domain, "alice", "bob@example.org", action)));
    }
    note(
        answer!(ask(store, remove(domain, "alice", "bob@example.org")), RemoveContactAnswer::Removed(both) => *both),
    );
    assert_eq!(known, (Generation(4), Generation(2)));
    assert_eq!((record(store, domain, "alice").generation, record(store, domain, "bob").generation), known);
}

pub(super) fn change_both_sides_together(store: &dyn Store) {
    let domain = ground(store);
    let both = both_sides(store, says(domain, "alice", "bob@example.org", SubscriptionAction::Subscribe));
    let (own, other) = (both.own.expect("it changed"), both.other.expect("it changed"));
    let (own, other) = (own.is.expect("a contact"), other.is.expect("a contact"));
    assert_eq!((own.standing.pending_out, own.is_listed, own.request), (true, true, None));
    assert_eq!((other.standing.pending_in, other.is_listed), (true, false));
    assert_eq!(other.request.as_deref(), Some(&b"<status>hi</status>"[..]));
    // Nothing changes when it is said again.
    let again = both_sides(store, says(domain, "alice", "bob@example.org", SubscriptionAction::Subscribe));
    assert_eq!(again, BothSides::default());
    both_sides(store, says(domain, "bob", "alice@example.org", SubscriptionAction::Subscribed));
    let said = |local, contact: &str| {
        let roster = record(store, domain, local).roster;
        roster.contacts.into_iter().find(|c| c.jid.as_str() == contact).map(|c| (c.standing, c.request))
    };
    let (to, from) =
        (Standing { to: true, ..Standing::default() }, Standing { from: true, ..Standing::default() });
    assert_eq!(said("alice", "bob@example.org"), Some((to, None)));
    assert_eq!(said("bob", "alice@example.org"), Some((from, None)));
    // Removing a contact ends them on both sides; the other keeps what it said of the account.
    done(store, remove(domain, "alice", "bob@example.org"));
    assert_eq!(said("alice", "bob@example.org"), None);
    assert_eq!(said("bob", "alice@example.org"), Some((Standing::default(), None)));
    assert_eq!(ask(store, remove(domain, "alice", "bob@example.org")), RemoveContactAnswer::Missing);
}

pub(super) fn need_no_account_on_the_other_side(store: &dyn Store) {
    let domain = ground(store);
    for contact in ["nobody@example.org", "example.org"] {
        let both = both_sides(store, says(domain, "alice", contact, SubscriptionAction::Subscribe));
        assert_eq!((both.own.is_some(), both.other), (true, None));
    }
    let outside = RemoveContact { other: None, ..remove(domain, "alice", "nobody@example.org") };
    answer!(ask(store, outside), RemoveContactAnswer::Removed(both) => assert_eq!(both.other, None));
    // Who has only asked is no contact that could be removed.
    both_sides(store, says(domain, "bob", "alice@example.org", SubscriptionAction::Subscribe));
    assert_eq!(ask(store, remove(domain, "alice", "bob@example.org")), RemoveContactAnswer::Missing);
}

pub(super) fn are_bounded(store: &dyn Store) {
    let domain = ground(store);
    let few = RosterBounds { contacts: 2, requests: 1, bytes: 100 };
    let put = |contact: &str, name: &str| {
        ask(store, PutContact { bounds: few, groups: Vec::new(), ..put(domain, "alice", contact, name) })
    };
    let is_put = |answer: &PutContactAnswer| matches!(answer, PutContactAnswer::Put(_));
    assert!(is_put(&put("a@example.org", "")) && is_put(&put("b@example.org", "")));
    assert_eq!(put("c@example.org", ""), PutContactAnswer::Full);
    // One that is there may be changed, though not to more bytes than there is room for.
    assert!(is_put(&put("a@example.org", &"x".repeat(70))));
    assert_eq!(put("b@example.org", "xxxxx"), PutContactAnswer::Full);
    assert!(is_put(&put("a@example.org", "")));
    assert!(is_put(&put("b@example.org", "xxxxx")));
    done(store, remove(domain, "alice", "b@example.org"));
    assert!(is_put(&put("c@example.org", "")));
    // Nothing that is asked of an account takes room of that; where there is none for requests, nobody is heard.
    let asks = |name: &str, requests: u32| {
        let asked = says(domain, name, "alice@example.org", SubscriptionAction::Subscribe);
        let (bounds, request) =
            (RosterBounds { requests, ..few }, Bytes::from(vec![b' '; REQUEST_BYTES_MAX]));
        both_sides(store, ChangeSubscription { bounds, request, ..asked })
    };
    account(store, domain, "dan");
    assert_eq!(asks("dan", 0).other, None);
    assert!(is_put(&put("a@example.org", "x")));
    let subscribe = ChangeSubscription {
        bounds: few,
        ..says(domain, "alice", "bob@example.org", SubscriptionAction::Subscribe)
    };
    assert_eq!(ask(store, subscribe), ChangeSubscriptionAnswer::Full);
}

/// Strangers neither fill a roster nor shut each other out: the request that came first goes.
pub(super) fn keep_the_newest_requests(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    let bounds = RosterBounds { requests: 3, bytes: 40, ..BOUNDS };
    let mut known = Generation(0);
    // By their names the later ones come first.
    for (n, name) in ["zoe", "yan", "xia", "wim", "vik"].into_iter().enumerate() {
        account(store, domain, name);
        let asked = says(domain, name, "alice@example.org", SubscriptionAction::Subscribe);
        let both = both_sides(store, ChangeSubscription { bounds, ..asked });
        let other = both.other.expect("it was heard");
        assert_eq!((other.before, other.after), (known, Generation(known.0 + 1)));
        known = other.after;
        let evicted = both.evicted.map(|evicted| {
            assert_eq!((evicted.before, evicted.after, evicted.is), (known, Generation(known.0 + 1), None));
            known = evicted.after;
            evicted.contact.as_str().to_owned()
        });
        let expected = [None, None, None, Some("zoe@example.org"), Some("yan@example.org")][n];
        assert_eq!(evicted.as_deref(), expected, "{name}");
    }
    let found = record(store, domain, "alice");
    let names: Vec<_> = found.roster.contacts.iter().map(|contact| contact.jid.as_str()).collect();
    assert_eq!(names, ["vik@example.org", "wim@example.org", "xia@example.org"]);
    assert_eq!(found.generation, known);
    // Its own contacts have all the room there is.
    let own = PutContact { bounds, groups: Vec::new(), ..put(domain, "alice", "b@example.org", "bob") };
    assert!(matches!(ask(store, own), PutContactAnswer::Put(_)));
    // Who was forgotten may ask again.
    let asked = says(domain, "zoe", "alice@example.org", SubscriptionAction::Subscribe);
    let both = both_sides(store, ChangeSubscription { bounds, ..asked });
    assert_eq!((both.own, both.other.is_some(), both.evicted.is_some()), (None, true, true));
}

pub(super) fn go_with_their_account(store: &dyn Store) {
    let domain = ground(store);
    done(store, put(domain, "alice", "bob@example.org", ""));
    done(store, DeleteAccount { domain, local: "alice".into(), now: T, held_until: T, rows_max: u32::MAX });
    account(store, domain, "alice");
    let record = record(store, domain, "alice");
    assert_eq!((record.generation, record.roster), (Generation(0), Roster::default()));
    done(store, put(domain, "alice", "bob@example.org", ""));
    done(store, delete_domain(domain));
    assert_eq!(read(store, domain, "alice"), None);
}

pub(super) fn of_many_at_once(store: &dyn Store) {
    let domain = domain(store);
    let names: Vec<String> = (0..50).map(|n| format!("u{n}")).collect();
    for (n, name) in names.iter().enumerate() {
        account(store, domain, name);
        (0..n % 4).for_each(|c| done(store, put(domain, name, &format!("c{c}@example.org"), name)));
    }
    let asks = names.iter().map(|local| ReadRecord {
        domain,
        local: (**local).into(),
        parts: RecordParts { roster: true, blocked: true, nodes: true, privacy: true },
        about: Vec::new(),
    });
    let answers: Vec<_> = asks.map(|question| asked(store, question)).collect();
    for (n, answer) in answers.iter().enumerate() {
        let record = answer!(waited(answer), Some(record) => *record);
        let found = record.roster.contacts;
        assert_eq!((record.generation.0, found.len()), ((n % 4) as u64, n % 4));
        assert!(found.iter().all(|contact| *contact.name == *names[n]));
    }
}

pub(super) fn write_lasting(store: &dyn Store) {
    let domain = ground(store);
    done(store, put(domain, "alice", "bob@example.org", "Bob"));
    both_sides(store, says(domain, "alice", "bob@example.org", SubscriptionAction::Subscribe));
}

pub(super) fn check_lasting(store: &dyn Store) {
    let domain = domains(store)[0].id;
    let (alice, bob) = (record(store, domain, "alice"), record(store, domain, "bob"));
    let said = |record: &Record| {
        record
            .roster
            .contacts
            .first()
            .map(|c| (c.jid.clone(), c.name.clone(), c.groups.len(), c.standing, c.is_listed))
    };
    let asks = Standing { pending_out: true, ..Standing::default() };
    let is_asked = Standing { pending_in: true, ..Standing::default() };
    assert_eq!(said(&alice), Some((jid("bob@example.org"), "Bob".into(), 2, asks, true)));
    assert_eq!(said(&bob), Some((jid("alice@example.org"), "".into(), 0, is_asked, false)));
    assert_eq!((alice.generation, bob.generation), (Generation(2), Generation(1)));
}
