//! Removing accounts and domains: what others have of them, and who takes their names next.

use super::ground::*;
use super::rosters::{BOUNDS, both_sides, put, record, says};
use carillon_core::model::*;
use carillon_core::ports::Store;

/// Alice, and accounts in another domain that stand to her in every way there is.
struct Ground {
    here: DomainId,
    there: DomainId,
}

const ALICE: &str = "alice@example.org";

fn ground(store: &dyn Store) -> Ground {
    let (here, there) = (domain(store), domain_named(store, "other.example"));
    account(store, here, "alice");
    for local in ["both", "asks", "asked", "grants", "hopes", "lists"] {
        account(store, there, local);
    }
    let ground = Ground { here, there };
    let mutual = [
        ground.says("both", SubscriptionAction::Subscribe),
        ground.hears("both", SubscriptionAction::Subscribed),
        ground.hears("both", SubscriptionAction::Subscribe),
        ground.says("both", SubscriptionAction::Subscribed),
        ground.says("asks", SubscriptionAction::Subscribe),
        ground.hears("asked", SubscriptionAction::Subscribe),
        ground.says("grants", SubscriptionAction::Subscribed),
    ];
    mutual.into_iter().for_each(|said| drop(both_sides(store, said)));
    // She does not hear of this one: there is no room.
    let bounds = RosterBounds { requests: 0, ..BOUNDS };
    let unheard = ChangeSubscription { bounds, ..ground.says("hopes", SubscriptionAction::Subscribe) };
    assert_eq!(both_sides(store, unheard).other, None);
    done(store, put(there, "both", ALICE, "Al"));
    done(store, put(there, "lists", ALICE, "Alice"));
    ground
}

impl Ground {
    /// One of the others says something to alice.
    fn says(&self, local: &str, action: SubscriptionAction) -> ChangeSubscription {
        ChangeSubscription { other: self.here, ..says(self.there, local, ALICE, action) }
    }

    /// Alice says something to one of them.
    fn hears(&self, local: &str, action: SubscriptionAction) -> ChangeSubscription {
        let contact = format!("{local}@other.example");
        ChangeSubscription { other: self.there, ..says(self.here, "alice", &contact, action) }
    }

    /// What one of the others says of alice.
    fn of(&self, store: &dyn Store, local: &str) -> Option<Contact> {
        record(store, self.there, local).roster.contacts.into_iter().find(|contact| contact.jid == jid(ALICE))
    }

    /// Nobody has a subscription with alice any more, and the changes tell that.
    fn is_left(&self, store: &dyn Store, before: &[Record], changes: &[RosterChange]) {
        let told: Vec<_> = changes.iter().map(|c| c.account.local().unwrap_or_default()).collect();
        assert_eq!(told, ["asked", "asks", "both", "grants", "hopes"]);
        for (change, before) in changes.iter().zip(before) {
            let after = record(store, self.there, change.account.local().expect("an account"));
            assert_eq!((change.before, change.after), (before.generation, after.generation), "{change:?}");
            assert_eq!(
                (after.generation.0, after.roster.version),
                (before.generation.0 + 1, after.generation)
            );
            assert_eq!(change.contact, jid(ALICE));
            assert_eq!(change.was.as_ref(), before.roster.contacts.first(), "{change:?}");
            assert_eq!(change.is.as_ref(), after.roster.contacts.first(), "{change:?}");
        }
        for local in ["both", "asks", "grants", "hopes", "lists"] {
            let left = self.of(store, local).unwrap_or_else(|| panic!("{local} has her listed"));
            assert_eq!((left.standing, left.request), (Standing::default(), None), "{local}");
        }
        assert_eq!(self.of(store, "asked"), None, "she had only asked");
        let listed = self.of(store, "both").expect("she is listed");
        assert_eq!((&*listed.name, listed.groups.len()), ("Al", 2), "what is hers stays");
    }

    fn records(&self, store: &dyn Store) -> Vec<Record> {
        ["asked", "asks", "both", "grants", "hopes"].map(|local| record(store, self.there, local)).into()
    }
}

fn deleted(store: &dyn Store, domain: DomainId, local: &str) -> Vec<RosterChange> {
    let delete = DeleteAccount { domain, local: local.into(), now: T, held_until: T, rows_max: u32::MAX };
    answer!(ask(store, delete), Ok(Part { entries, more: false }) => entries)
}

pub(super) fn of_an_account_end_its_subscriptions(store: &dyn Store) {
    let ground = ground(store);
    let before = ground.records(store);
    let changes = deleted(store, ground.here, "alice");
    ground.is_left(store, &before, &changes);
    // Who gets the name next is nobody's contact: she is not let in, and her grant is nobody's.
    account(store, ground.here, "alice");
    assert_eq!(record(store, ground.here, "alice").roster, Roster::default());
    both_sides(store, ground.hears("grants", SubscriptionAction::Subscribe));
    assert!(ground.of(store, "grants").is_some_and(|contact| contact.standing.pending_in));
    both_sides(store, ground.hears("hopes", SubscriptionAction::Subscribed));
    assert!(ground.of(store, "hopes").is_some_and(|contact| !contact.standing.to));
}

pub(super) fn of_a_domain_end_its_subscriptions(store: &dyn Store) {
    let ground = ground(store);
    account(store, ground.here, "bob");
    super::rosters::subscribe(store, ground.here, "alice", "bob");
    let before = ground.records(store);
    let part = answer!(ask(store, delete_domain(ground.here)), Ok(part) => part);
    assert!(!part.more);
    ground.is_left(store, &before, &part.entries);
    missing(store, delete_domain(ground.here));
}

pub(super) fn of_a_domain_come_in_parts(store: &dyn Store) {
    let ground = ground(store);
    for local in ["bob", "carol", "dan"] {
        account(store, ground.here, local);
    }
    topic(store, ground.here, "news");
    let before = ground.records(store);
    let (mut changes, mut parts, mut left) = (Vec::new(), 0, 4);
    loop {
        let part = DeleteDomain { domain: ground.here, now: T, rows_max: 1 };
        let part = answer!(ask(store, part), Ok(part) => part);
        changes.extend(part.entries);
        parts += 1;
        if !part.more {
            break;
        }
        assert!(domains(store).iter().any(|domain| domain.id == ground.here), "it is there to the end");
        let page = Accounts { domain: ground.here, after: None, limit: 9 };
        let accounts = ask(store, page).len();
        assert!(accounts <= left, "{accounts} instead of {left}");
        left = accounts;
    }
    assert!(parts >= 4, "{parts}");
    ground.is_left(store, &before, &changes);
    assert!(domains(store).iter().all(|domain| domain.id != ground.here));
}

pub(super) fn of_an_account_come_in_parts(store: &dyn Store) {
    let ground = ground(store);
    let news = topic(store, ground.here, "news");
    subscribe(store, news, ground.here, "alice");
    for n in 1..=20 {
        stored(store, notification(ground.here, "alice", n));
    }
    let before = ground.records(store);
    let delete = || DeleteAccount {
        domain: ground.here,
        local: "alice".into(),
        now: T,
        held_until: T.plus(100),
        rows_max: 4,
    };
    let (mut changes, mut parts) = (Vec::new(), 0);
    loop {
        let part = answer!(ask(store, delete()), Ok(part) => part);
        changes.extend(part.entries);
        parts += 1;
        let left = ask(store, Account { domain: ground.here, local: "alice".into() });
        if !part.more {
            assert!(left.is_none());
            break;
        }
        assert!(left.is_some_and(|left| left.state != AccountState::Enabled), "nobody logs in meanwhile");
    }
    assert!(parts > 1, "{parts}");
    ground.is_left(store, &before, &changes);
    missing(store, delete());
    account(store, ground.here, "alice");
    assert_eq!(record(store, ground.here, "alice").roster, Roster::default());
}

pub(super) fn that_are_unfinished_are_listed(store: &dyn Store) {
    let ground = ground(store);
    for local in ["alice", "bob"] {
        if local != "alice" {
            account(store, ground.here, local);
        }
        for n in 1..=5 {
            let id = if local == "alice" { n } else { 10 + n };
            stored(store, notification(ground.here, local, id));
        }
    }
    let part = |local: &str, now| DeleteAccount {
        domain: ground.here,
        local: local.into(),
        now,
        held_until: now,
        rows_max: 1,
    };
    let listed = |before, limit| ask(store, UnfinishedRemovals { before, limit });
    let account_of =
        |local: &str| UnfinishedRemoval::Account(ground.here, jid(&format!("{local}@example.org")));
    assert_eq!(listed(T.plus(99), 9), []);
    assert!(answer!(ask(store, part("bob", T.plus(1))), Ok(part) => part.more));
    assert!(answer!(ask(store, part("alice", T.plus(2))), Ok(part) => part.more));
    assert_eq!(listed(T, 9), []);
    assert_eq!(listed(T.plus(1), 9), [account_of("bob")]);
    assert_eq!(listed(T.plus(2), 9), [account_of("bob"), account_of("alice")]);
    assert_eq!(listed(T.plus(2), 1), [account_of("bob")]);
    // Nobody brings it back: what it was given would go with the rest.
    let (domain, state) = (ground.here, AccountState::Enabled);
    missing(store, SetAccountState { domain, local: "bob".into(), state });
    missing(store, SetCredentials { domain, local: "bob".into(), credentials: keys(2) });
    let again = vec![ImportedAccount { local: "bob".into(), credentials: keys(2) }];
    let imported = ask(store, ImportAccounts { domain, accounts: again, now: T });
    assert_eq!(imported, Err(ImportRefused::IsBeingRemoved));
    assert_eq!(ask(store, create_account(domain, "bob")), CreateAccountAnswer::Exists);
    while answer!(ask(store, part("bob", T.plus(3))), Ok(part) => part.more) {}
    assert_eq!(listed(T.plus(99), 9), [account_of("alice")]);
    account(store, domain, "bob");
    // A domain is listed until it is gone, and with it what is left of its accounts.
    let part = DeleteDomain { domain, now: T.plus(4), rows_max: 1 };
    let is_said = || domains(store).iter().any(|known| known.id == domain && known.is_being_removed);
    assert!(!is_said());
    assert!(answer!(ask(store, part.clone()), Ok(part) => part.more));
    assert!(listed(T.plus(99), 9).contains(&UnfinishedRemoval::Domain(domain)));
    assert!(is_said());
    assert_eq!(ask(store, create_account(domain, "carol")), CreateAccountAnswer::NoDomain);
    let imported = vec![ImportedAccount { local: "carol".into(), credentials: keys(2) }];
    let imported = ask(store, ImportAccounts { domain, accounts: imported, now: T });
    assert_eq!(imported, Err(ImportRefused::NoDomain));
    while answer!(ask(store, part.clone()), Ok(part) => part.more) {}
    assert_eq!(listed(T.plus(99), 9), []);
}

pub(super) fn hold_names_back(store: &dyn Store) {
    let policy = Policy { registration: true, ..Policy::default() };
    let open = ask(store, PutDomain { name: "open.example".into(), policy }).domain.id;
    let closed = domain(store);
    let registers = |domain, local: &str, now| {
        let create = CreateAccount { is_in_band: true, now, ..create_account(domain, local) };
        ask(store, create)
    };
    let delete = |domain, local: &str| {
        done(
            store,
            DeleteAccount {
                domain,
                local: local.into(),
                now: T,
                held_until: T.plus(100),
                rows_max: u32::MAX,
            },
        );
    };
    for domain in [open, closed] {
        for local in ["alice", "bob", "carol"] {
            account(store, domain, local);
            delete(domain, local);
        }
    }
    assert_eq!(registers(open, "alice", T.plus(99)), CreateAccountAnswer::Held);
    answer!(registers(open, "dan", T.plus(99)), CreateAccountAnswer::Created(_) => ());
    // Also where nobody registers without an invitation: there are those who have one.
    assert_eq!(registers(closed, "alice", T.plus(99)), CreateAccountAnswer::Held);
    answer!(registers(closed, "alice", T.plus(100)), CreateAccountAnswer::Created(_) => ());
    // Whoever does it on purpose gets it at once, and it is not held back any more.
    account(store, open, "bob");
    assert_eq!(registers(open, "bob", T.plus(1)), CreateAccountAnswer::Exists);
    done(
        store,
        DeleteAccount { domain: open, local: "bob".into(), now: T, held_until: T, rows_max: u32::MAX },
    );
    answer!(registers(open, "bob", T.plus(1)), CreateAccountAnswer::Created(_) => ());
    // It ends, whether or not that was noticed.
    answer!(registers(open, "alice", T.plus(100)), CreateAccountAnswer::Created(_) => ());
    ask(store, Sweep { now: T.plus(100), forget: T, max: 10 });
    answer!(registers(open, "carol", T.plus(1)), CreateAccountAnswer::Created(_) => ());
    // Held names are no reason to keep a domain.
    delete(open, "carol");
    done(store, delete_domain(open));
    let again = ask(store, PutDomain { name: "open.example".into(), policy }).domain.id;
    answer!(registers(again, "carol", T), CreateAccountAnswer::Created(_) => ());
}

pub(super) fn are_told_the_same_again(store: &dyn Store) {
    let ground = ground(store);
    let once = |n: u128, question: carillon_core::ports::Ask| {
        let (sender, receiver) = std::sync::mpsc::channel();
        let ask = question.once(OperationId::new(T, n << 48));
        store.ask(ask, Box::new(move |answer| drop(sender.send(answer))));
        format!("{:?}", receiver.recv().expect("it is answered"))
    };
    let account = DeleteAccount {
        domain: ground.here,
        local: "alice".into(),
        now: T,
        held_until: T,
        rows_max: u32::MAX,
    };
    let first = once(1, account.clone().into());
    assert!(first.contains("hopes@other.example"), "{first}");
    assert_eq!(once(1, account.into()), first);
    for (n, rows_max) in [(2, 1), (3, 1)] {
        let part = DeleteDomain { domain: ground.there, now: T, rows_max };
        let first = once(n, part.clone().into());
        assert!(first.contains("more: true"), "{first}");
        assert_eq!(once(n, part.into()), first);
    }
}
