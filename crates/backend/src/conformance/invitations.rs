//! Invitations, and what their use changes.

use super::Noun;
use super::ground::*;
use super::rosters::{BOUNDS, record};
use carillon_core::model::{self, DomainId, InvitationId, Policy, RosterBounds, Standing, TokenHash, UnixMs};
use carillon_core::ports::store::blocking::ChangeBlockList;
use carillon_core::ports::store::invitations::*;
use carillon_core::ports::{Ask, Store};

pub(super) const NOUN: Noun = Noun {
    writes: |domain| {
        // There is no such invitation: those that use one say so.
        let id = InvitationId(77);
        vec![
            Ask::from(create(domain, "asked", Some("alice"))),
            Ask::from(RevokeInvitation { domain, id }),
            Ask::from(register(domain, "nothing", "eve")),
            Ask::from(accept(domain, "nothing", "alice", "eve")),
        ]
    },
    state: |store, domain| format!("{:?}", listed(store, domain)),
    write_lasting: |store, domain| {
        made(store, CreateInvitation { uses_max: 2, ..create(domain, "lasting", Some("alice")) });
        registered(store, register(domain, "lasting", "bob"));
    },
    check_lasting: |store, domain| {
        let found = find(store, domain, "lasting").expect("it is there");
        assert_eq!((found.inviter.as_deref(), found.uses), (Some("alice"), 1));
        assert!(sees(store, domain, "alice", "bob") && sees(store, domain, "bob", "alice"));
    },
};

fn create(domain: DomainId, token: &str, inviter: Option<&str>) -> CreateInvitation {
    CreateInvitation {
        domain,
        hash: TokenHash::of(token),
        inviter: inviter.map(Into::into),
        local: None,
        registers: true,
        uses_max: 1,
        expires: T.plus(1000),
        max: 1000,
        inviter_max: 1000,
        now: T,
    }
}

fn made(store: &dyn Store, asked: CreateInvitation) -> model::Invitation {
    answer!(ask(store, asked), CreateInvitationAnswer::Created(made) => *made)
}

fn find(store: &dyn Store, domain: DomainId, token: &str) -> Option<model::Invitation> {
    ask(store, Invitation { domain, hash: TokenHash::of(token) }).map(|found| *found)
}

fn listed(store: &dyn Store, domain: DomainId) -> Vec<model::Invitation> {
    ask(store, Invitations { domain, before: InvitationId(u64::MAX >> 1), limit: 1000 })
}

fn register(domain: DomainId, token: &str, local: &str) -> RegisterInvited {
    let (hash, local) = (TokenHash::of(token), local.into());
    RegisterInvited { domain, hash, local, credentials: keys(7), bounds: BOUNDS, now: T }
}

fn registered(store: &dyn Store, asked: RegisterInvited) -> Vec<model::RosterChange> {
    answer!(ask(store, asked), RegisterInvitedAnswer::Registered(changes) => changes)
}

fn accept(domain: DomainId, token: &str, inviter: &str, local: &str) -> AcceptInvitation {
    let address = |local: &str| jid(&format!("{local}@example.org"));
    AcceptInvitation {
        inviter_domain: domain,
        inviter: address(inviter),
        hash: TokenHash::of(token),
        domain,
        account: address(local),
        bounds: BOUNDS,
        now: T,
    }
}

/// Whether both subscriptions between two accounts are in the roster of the first, and nothing is left open.
fn sees(store: &dyn Store, domain: DomainId, local: &str, other: &str) -> bool {
    let roster = record(store, domain, local).roster;
    let said = roster.contacts.into_iter().find(|contact| contact.jid.local() == Some(other));
    let both = Standing { to: true, from: true, ..Standing::default() };
    said.is_some_and(|contact| contact.is_listed && contact.standing == both && contact.request.is_none())
}

pub(super) fn are_made_found_and_listed(store: &dyn Store) {
    let (domain, other) = (domain(store), domain_named(store, "other.example"));
    account(store, domain, "alice");
    let first = made(store, create(domain, "a", None));
    let second = CreateInvitation {
        local: Some("juliet".into()),
        registers: false,
        uses_max: 9,
        ..create(domain, "b", Some("alice"))
    };
    let second = made(store, second);
    assert_eq!((second.inviter.as_deref(), second.local.as_deref()), (Some("alice"), Some("juliet")));
    assert_eq!((second.registers, second.uses_max, second.uses), (false, 9, 0));
    assert_eq!((second.created, second.expires), (T, T.plus(1000)));
    assert_eq!(listed(store, domain), [second.clone(), first.clone()]);
    let older = Invitations { domain, before: second.id, limit: 1 };
    assert_eq!(ask(store, older), std::slice::from_ref(&first));
    assert_eq!(find(store, domain, "b"), Some(second));
    assert_eq!(find(store, other, "b"), None, "it is another domain's");
    assert_eq!(ask(store, create(domain, "a", None)), CreateInvitationAnswer::Exists);
    assert_eq!(ask(store, create(domain, "c", Some("nobody"))), CreateInvitationAnswer::Missing);
    assert_eq!(ask(store, create(DomainId(99), "c", None)), CreateInvitationAnswer::Missing);
    missing(store, RevokeInvitation { domain: other, id: first.id });
    done(store, RevokeInvitation { domain, id: first.id });
    missing(store, RevokeInvitation { domain, id: first.id });
    assert_eq!(find(store, domain, "a"), None);
}

pub(super) fn are_bounded_and_forgotten(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    let of_alice = |token| CreateInvitation { inviter_max: 1, ..create(domain, token, Some("alice")) };
    made(store, of_alice("a"));
    assert_eq!(ask(store, of_alice("b")), CreateInvitationAnswer::Full);
    let of_domain = |token| CreateInvitation { max: 2, ..create(domain, token, None) };
    made(store, of_domain("b"));
    assert_eq!(ask(store, of_domain("c")), CreateInvitationAnswer::Full);
    let later = T.plus(1000);
    made(store, CreateInvitation { now: later, expires: later.plus(1), ..of_domain("c") });
    assert_eq!(listed(store, domain).len(), 1, "those that had expired are gone");
}

pub(super) fn register_an_account_once_per_use(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    made(store, CreateInvitation { uses_max: 2, ..create(domain, "a", Some("alice")) });
    assert_eq!(ask(store, register(domain, "a", "alice")), RegisterInvitedAnswer::Taken);
    assert_eq!(find(store, domain, "a").map(|found| found.uses), Some(0), "nothing came of it");
    let changes = registered(store, register(domain, "a", "bob"));
    let told: Vec<_> = changes.iter().map(|change| (change.account.as_str(), change.before.0)).collect();
    assert_eq!(told, [("bob@example.org", 0), ("alice@example.org", 0)]);
    for (change, local) in changes.iter().zip(["bob", "alice"]) {
        assert_eq!(change.after, record(store, domain, local).generation);
        assert!(change.was.is_none() && change.is.is_some());
    }
    assert!(sees(store, domain, "alice", "bob") && sees(store, domain, "bob", "alice"));
    assert_eq!(identity(store, domain, "bob").credentials, keys(7));
    registered(store, register(domain, "a", "carol"));
    assert_eq!(ask(store, register(domain, "a", "dave")), RegisterInvitedAnswer::Invalid, "it is used up");
    assert_eq!(find(store, domain, "a").map(|found| found.uses), Some(2));
    assert_eq!(ask(store, register(domain, "unknown", "dave")), RegisterInvitedAnswer::Invalid);
    missing(store, Account { domain, local: "dave".into() });
}

pub(super) fn are_for_their_name_their_time_and_their_purpose(store: &dyn Store) {
    let policy = Policy { registration: true, ..Policy::default() };
    let domain = ask(store, PutDomain { name: "example.org".into(), policy }).domain.id;
    account(store, domain, "juliet");
    done(
        store,
        DeleteAccount { domain, local: "juliet".into(), now: T, held_until: T.plus(9), rows_max: u32::MAX },
    );
    made(store, create(domain, "any", None));
    assert_eq!(
        ask(store, register(domain, "any", "juliet")),
        RegisterInvitedAnswer::Taken,
        "it is held back"
    );
    made(store, CreateInvitation { local: Some("juliet".into()), ..create(domain, "hers", None) });
    assert_eq!(ask(store, register(domain, "hers", "romeo")), RegisterInvitedAnswer::OtherName);
    let late = |at: UnixMs| RegisterInvited { now: at, ..register(domain, "hers", "juliet") };
    assert_eq!(ask(store, late(T.plus(1000))), RegisterInvitedAnswer::Invalid, "it has expired");
    assert!(registered(store, late(T.plus(5))).is_empty(), "nobody invited her");
    made(store, CreateInvitation { registers: false, ..create(domain, "contacts", Some("juliet")) });
    assert_eq!(ask(store, register(domain, "contacts", "romeo")), RegisterInvitedAnswer::Invalid);
}

pub(super) fn make_contacts_of_accounts(store: &dyn Store) {
    let domain = domain(store);
    for local in ["alice", "bob", "carol"] {
        account(store, domain, local);
    }
    made(store, CreateInvitation { uses_max: 2, registers: false, ..create(domain, "a", Some("alice")) });
    missing(store, accept(domain, "a", "carol", "bob"));
    missing(store, accept(domain, "a", "alice", "alice"));
    missing(store, accept(domain, "b", "alice", "bob"));
    assert!(listed(store, domain).iter().all(|invitation| invitation.uses == 0));
    let changes = answer!(ask(store, accept(domain, "a", "alice", "bob")), Ok(changes) => changes);
    assert_eq!(changes.len(), 2);
    assert!(sees(store, domain, "alice", "bob") && sees(store, domain, "bob", "alice"));
    let again = answer!(ask(store, accept(domain, "a", "alice", "bob")), Ok(changes) => changes);
    assert!(again.is_empty(), "they are contacts already");
    assert_eq!(find(store, domain, "a").map(|found| found.uses), Some(1));
    done(store, accept(domain, "a", "alice", "carol"));
    account(store, domain, "dave");
    missing(store, accept(domain, "a", "alice", "dave"));
}

pub(super) fn make_an_account_where_there_is_no_room_for_a_contact(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    made(store, create(domain, "a", Some("alice")));
    let bounds = RosterBounds { contacts: 0, ..BOUNDS };
    assert!(registered(store, RegisterInvited { bounds, ..register(domain, "a", "bob") }).is_empty());
    assert!(ask(store, Account { domain, local: "bob".into() }).is_some());
    // Whoever is blocked becomes no contact.
    let local = "alice".into();
    let edit = model::BlockListEdit::Block(vec![jid("carol@example.org").to_jid()]);
    let bounds = model::BlockListBounds { addresses: 9, bytes: 999 };
    ask(store, ChangeBlockList { domain, local, edit, bounds });
    made(store, create(domain, "b", Some("alice")));
    registered(store, register(domain, "b", "carol"));
    assert!(!sees(store, domain, "alice", "carol") && !sees(store, domain, "carol", "alice"));
}

pub(super) fn are_done_once(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    let once = |n: u128, ask: Ask| match ask {
        Ask::Write(write) => Ask::Once(model::OperationId::new(T, n << 48), write),
        other => panic!("{other:?}"),
    };
    let said = |ask: Ask| {
        let (sender, receiver) = std::sync::mpsc::channel();
        store.ask(ask, Box::new(move |answer| drop(sender.send(answer))));
        format!("{:?}", receiver.recv().expect("it is answered"))
    };
    let writes: [Ask; 4] = [
        CreateInvitation { uses_max: 2, ..create(domain, "a", Some("alice")) }.into(),
        register(domain, "a", "bob").into(),
        create_account(domain, "carol").into(),
        accept(domain, "a", "alice", "carol").into(),
    ];
    for (write, n) in writes.into_iter().zip(1..) {
        let first = said(once(n, write.clone()));
        assert!(!first.contains("Failed"), "{first}");
        assert_eq!(said(once(n, write)), first);
    }
    let found = listed(store, domain);
    assert_eq!(found.iter().map(|invitation| invitation.uses).collect::<Vec<_>>(), [2]);
}

pub(super) fn go_with_their_account_and_their_domain(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    made(store, create(domain, "a", Some("alice")));
    made(store, create(domain, "b", None));
    done(store, DeleteAccount { domain, local: "alice".into(), now: T, held_until: T, rows_max: u32::MAX });
    account(store, domain, "alice");
    assert_eq!(find(store, domain, "a"), None);
    assert_eq!(listed(store, domain).len(), 1);
    assert!(!ask(store, delete_domain(domain)).expect("it is there").more);
    assert_eq!(find(store, domain, "b"), None);
}
