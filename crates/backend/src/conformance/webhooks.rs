//! Webhooks: who sends their events, how far they have come, and what their receivers did not take.

use super::ground::*;
use carillon_core::model::*;
use carillon_core::ports::Store;
use carillon_core::ports::store::webhooks::{
    self, DEAD_LETTER_BYTES_MAX, DEAD_LETTERS_MAX, WEBHOOKS_MAX, WEBHOOKS_PER_DOMAIN_MAX,
};

const HERE: u64 = 7;
const ELSEWHERE: u64 = u64::MAX;

pub(super) fn create(domain: Option<DomainId>) -> CreateWebhook {
    let states = States::from(NotificationState::Acknowledged).with(NotificationState::Expired.into());
    let secret = WebhookSecret(Box::new([7; 32]));
    let (url, wanted) = ("https://a.example/".into(), states.into());
    CreateWebhook { domain, url, wanted, contents: false, secret, now: T }
}

fn made(store: &dyn Store, domain: Option<DomainId>) -> Webhook {
    answer!(ask(store, create(domain)), CreateWebhookAnswer::Created(made) => *made)
}

/// Creates so many, asked at once.
fn many(store: &dyn Store, domain: Option<DomainId>, count: u32) {
    let on_their_way: Vec<_> = (0..count).map(|_| asked(store, create(domain))).collect();
    for answer in &on_their_way {
        answer!(waited(answer), CreateWebhookAnswer::Created(_) => ());
    }
}

fn find(store: &dyn Store, id: WebhookId) -> Option<Webhook> {
    ask(store, webhooks::Webhook { id }).map(|webhook| *webhook)
}

fn listed(store: &dyn Store, domain: Option<DomainId>) -> Vec<WebhookId> {
    ask(store, Webhooks { domain }).iter().map(|webhook| webhook.id).collect()
}

/// Changes nothing.
pub(super) fn unchanged(id: WebhookId) -> UpdateWebhook {
    UpdateWebhook { id, url: None, types: None, states: None, contents: None, secret: None, status: None }
}

fn claim(owner: u64, now: UnixMs) -> ClaimWebhooks {
    ClaimWebhooks { owner, now, until: now.plus(1000), passed: Vec::new() }
}

fn claimed(store: &dyn Store, claim: ClaimWebhooks) -> Vec<WebhookId> {
    ask(store, claim).iter().map(|webhook| webhook.id).collect()
}

/// It has come to an event, and all is well.
fn commit(id: WebhookId, cursor: u64) -> CommitWebhook {
    let progress = WebhookProgress { cursor, ..WebhookProgress::default() };
    CommitWebhook { id, owner: HERE, progress, is_gone: false, letters: Vec::new() }
}

pub(super) fn letter(event: u64) -> DeadLetter {
    let failure = WebhookFailure { at: T.plus(event), error: "é".into() };
    DeadLetter { event, body: format!("{{\"id\":{event}}}").into(), failure }
}

/// Claims the webhook, and has letters of these events kept.
fn kept(store: &dyn Store, id: WebhookId, events: impl IntoIterator<Item = u64>) {
    assert!(claimed(store, claim(HERE, T)).contains(&id));
    let letters = events.into_iter().map(letter).collect();
    assert_eq!(ask(store, CommitWebhook { letters, ..commit(id, 1) }), Ok(()));
}

pub(super) fn letters(store: &dyn Store, webhook: WebhookId) -> Vec<DeadLetter> {
    let (mut found, mut after) = (Vec::new(), 0);
    loop {
        let part = ask(store, webhooks::DeadLetters { webhook, after, page: page(1000) });
        after = part.entries.last().map_or(after, |last| last.event);
        found.extend(part.entries);
        if !part.more {
            return found;
        }
    }
}

fn events(store: &dyn Store, webhook: WebhookId) -> Vec<u64> {
    letters(store, webhook).iter().map(|letter| letter.event).collect()
}

pub(super) fn are_created_at_the_newest_event(store: &dyn Store) {
    let domain = domain(store);
    let first = made(store, None);
    assert_eq!(first.progress, WebhookProgress::default());
    account(store, domain, "alice");
    stored(store, notification(domain, "alice", 1));
    assert!(end(store, vec![acknowledged(id(1))]).is_empty());
    let newest = ask(store, Events { after: 0, domain: None, wanted: States::NONE.into(), max: 0 }).newest;
    let second = made(store, Some(domain));
    let CreateWebhook { domain, url, wanted, contents, secret, now } = create(Some(domain));
    let states = wanted.states;
    let expected = Webhook {
        id: second.id,
        domain,
        url,
        wanted,
        contents,
        secret,
        status: WebhookStatus::Enabled,
        created: now,
        progress: WebhookProgress { cursor: newest, ..WebhookProgress::default() },
        dead_letters: DeadLetters::default(),
    };
    assert_eq!(second, expected);
    assert_eq!(find(store, second.id), Some(expected));
    assert!(second.id > first.id && newest > 0);
    assert!(!states.contains(NotificationState::Dropped) && states.contains(NotificationState::Expired));
}

pub(super) fn need_their_domain(store: &dyn Store) {
    missing(store, create(Some(DomainId(9))));
    assert!(listed(store, None).is_empty());
}

pub(super) fn are_bounded(store: &dyn Store) {
    let (domain, other) = (domain(store), domain_named(store, "other.example"));
    many(store, Some(domain), WEBHOOKS_PER_DOMAIN_MAX);
    assert_eq!(ask(store, create(Some(domain))), CreateWebhookAnswer::TooMany);
    let one = made(store, Some(other));
    many(store, None, WEBHOOKS_MAX - WEBHOOKS_PER_DOMAIN_MAX - 1);
    assert_eq!(ask(store, create(None)), CreateWebhookAnswer::TooMany);
    done(store, DeleteWebhook { id: one.id });
    made(store, None);
}

pub(super) fn are_listed(store: &dyn Store) {
    let (domain, other) = (domain(store), domain_named(store, "other.example"));
    let [a, b, c] = [None, Some(domain), Some(other)].map(|domain| made(store, domain).id);
    assert_eq!(listed(store, None), [a, b, c]);
    assert_eq!(listed(store, Some(domain)), [b]);
    assert!(listed(store, Some(DomainId(99))).is_empty());
}

pub(super) fn are_changed(store: &dyn Store) {
    assert_eq!(ask(store, unchanged(WebhookId(1))), None);
    let before = made(store, None);
    claimed(store, claim(HERE, T));
    let failure = WebhookFailure { at: T.plus(3), error: "503".into() };
    let troubled = WebhookProgress {
        cursor: 2,
        failures: 3,
        refusals: 4,
        is_alone: true,
        next_attempt: Some(T.plus(5)),
        last_failure: Some(failure),
    };
    let fails = CommitWebhook { progress: troubled.clone(), ..commit(before.id, 0) };
    assert_eq!(ask(store, fails.clone()), Ok(()));
    let (states, secret) = (NotificationState::Dropped.into(), WebhookSecret(Box::new([1; 24])));
    let types = EventTypes::from(EventType::RoomMessage).with(EventType::RoomCreated.into());
    let status = WebhookStatus::Disabled;
    let change = UpdateWebhook {
        types: Some(types),
        states: Some(states),
        contents: Some(true),
        secret: Some(secret.clone()),
        status: Some(status),
        ..unchanged(before.id)
    };
    let wanted = EventFilter { types, states };
    let after = Webhook { wanted, contents: true, secret, status, progress: troubled, ..before };
    assert_eq!(ask(store, change).map(|webhook| *webhook), Some(after.clone()));
    assert_eq!(ask(store, unchanged(after.id)).map(|webhook| *webhook), Some(after.clone()));
    assert_eq!(find(store, after.id), Some(after.clone()));
    let well = WebhookProgress { cursor: 2, ..WebhookProgress::default() };
    let elsewhere = UpdateWebhook { url: Some("https://b.example/".into()), ..unchanged(after.id) };
    let answer = ask(store, elsewhere).expect("it is there");
    assert_eq!((&*answer.url, answer.status, &answer.progress), ("https://b.example/", status, &well));
    assert_eq!(ask(store, fails), Ok(()));
    let enable = UpdateWebhook { status: Some(WebhookStatus::Enabled), ..unchanged(after.id) };
    let answer = ask(store, enable).expect("it is there");
    assert_eq!((answer.status, answer.progress), (WebhookStatus::Enabled, well));
}

pub(super) fn are_deleted_with_their_letters(store: &dyn Store) {
    let webhook = made(store, None).id;
    kept(store, webhook, [1]);
    done(store, DeleteWebhook { id: webhook });
    missing(store, DeleteWebhook { id: webhook });
    assert_eq!(find(store, webhook), None);
    assert!(letters(store, webhook).is_empty());
    assert_eq!(ask(store, commit(webhook, 2)), Err(Lost));
    assert_ne!(made(store, None).id, webhook);
}

pub(super) fn go_with_their_domain(store: &dyn Store) {
    let (domain, other) = (domain(store), domain_named(store, "other.example"));
    let [gone, theirs, all] = [Some(domain), Some(other), None].map(|domain| made(store, domain).id);
    kept(store, gone, [1]);
    kept(store, theirs, [1]);
    done(store, delete_domain(domain));
    assert_eq!(listed(store, None), [theirs, all]);
    assert!(letters(store, gone).is_empty());
    assert_eq!(events(store, theirs), [1]);
    assert_eq!(ask(store, commit(gone, 2)), Err(Lost));
}

pub(super) fn are_one_owners_until_the_claim_ends(store: &dyn Store) {
    let [a, b] = [(); 2].map(|()| made(store, None).id);
    assert_eq!(claimed(store, claim(HERE, T)), [a, b]);
    assert!(claimed(store, claim(ELSEWHERE, T.plus(999))).is_empty());
    // A claim is renewed by its owner, and what is new is anybody's.
    assert_eq!(claimed(store, claim(HERE, T.plus(500))), [a, b]);
    let c = made(store, None).id;
    assert_eq!(claimed(store, claim(ELSEWHERE, T.plus(1499))), [c]);
    assert_eq!(claimed(store, claim(ELSEWHERE, T.plus(1500))), [a, b, c]);
    assert!(claimed(store, claim(HERE, T.plus(1501))).is_empty());
}

pub(super) fn that_are_disabled_are_not_claimed(store: &dyn Store) {
    let [a, b] = [(); 2].map(|()| made(store, None).id);
    assert_eq!(claimed(store, claim(HERE, T)), [a, b]);
    let set = |status| UpdateWebhook { status: Some(status), ..unchanged(a) };
    done(store, set(WebhookStatus::Disabled));
    assert_eq!(claimed(store, claim(HERE, T.plus(1))), [b]);
    // What was under way when it was disabled still counts.
    assert_eq!(ask(store, commit(a, 3)), Ok(()));
    done(store, set(WebhookStatus::Enabled));
    assert_eq!(claimed(store, claim(HERE, T.plus(2))), [a, b]);
}

pub(super) fn are_committed_by_their_owner(store: &dyn Store) {
    let webhook = made(store, None).id;
    assert_eq!(ask(store, commit(webhook, 1)), Err(Lost), "nobody holds it");
    claimed(store, claim(HERE, T));
    assert_eq!(ask(store, commit(webhook, 5)), Ok(()));
    assert_eq!(claimed(store, claim(ELSEWHERE, T.plus(1000))), [webhook]);
    let late = CommitWebhook { letters: vec![letter(6)], is_gone: true, ..commit(webhook, 9) };
    assert_eq!(ask(store, late), Err(Lost));
    let now = find(store, webhook).expect("it is there");
    assert_eq!((now.progress.cursor, now.status), (5, WebhookStatus::Enabled));
    assert!(letters(store, webhook).is_empty());
}

pub(super) fn pass_what_is_of_no_interest(store: &dyn Store) {
    let [a, b] = [(); 2].map(|()| made(store, None).id);
    let cursors = |passed: &[(WebhookId, u64)], owner| {
        let answer = ask(store, ClaimWebhooks { passed: passed.to_vec(), ..claim(owner, T) });
        answer.iter().map(|webhook| webhook.progress.cursor).collect::<Vec<_>>()
    };
    assert_eq!(cursors(&[(a, 9)], HERE), [0, 0], "it was not held yet");
    assert_eq!(cursors(&[(a, 9), (b, 4)], HERE), [9, 4]);
    assert_eq!(cursors(&[(a, 3)], HERE), [9, 4], "never back");
    assert!(cursors(&[(b, 8)], ELSEWHERE).is_empty());
    assert_eq!(cursors(&[], HERE), [9, 4]);
}

pub(super) fn whose_receiver_is_gone_are_disabled(store: &dyn Store) {
    let webhook = made(store, None).id;
    claimed(store, claim(HERE, T));
    assert_eq!(ask(store, CommitWebhook { is_gone: true, ..commit(webhook, 1) }), Ok(()));
    assert_eq!(find(store, webhook).map(|webhook| webhook.status), Some(WebhookStatus::Gone));
    assert!(claimed(store, claim(HERE, T)).is_empty());
}

pub(super) fn keep_dead_letters(store: &dyn Store) {
    let [webhook, other] = [(); 2].map(|()| made(store, None).id);
    kept(store, webhook, [3, 1]);
    kept(store, other, [2]);
    assert_eq!(letters(store, webhook), [letter(1), letter(3)]);
    let figures = |id| find(store, id).expect("it is there").dead_letters;
    let bytes = [1, 3].map(|event| letter(event).bytes() as u64).iter().sum();
    assert_eq!(figures(webhook), DeadLetters { count: 2, bytes, dropped: 0 });
    // One that is there stays as it is.
    let again = DeadLetter { body: "other".into(), ..letter(3) };
    assert_eq!(ask(store, CommitWebhook { letters: vec![again], ..commit(webhook, 4) }), Ok(()));
    assert_eq!(letters(store, webhook), [letter(1), letter(3)]);
    done(store, DeleteDeadLetters { webhook, events: vec![1, 2] });
    assert_eq!(events(store, webhook), [3]);
    assert_eq!(figures(webhook), DeadLetters { count: 1, bytes: letter(3).bytes() as u64, dropped: 0 });
    assert_eq!(events(store, other), [2]);
    done(store, DeleteDeadLetters { webhook, events: vec![3] });
    assert_eq!(figures(webhook), DeadLetters::default());
}

pub(super) fn letters_come_in_pages(store: &dyn Store) {
    let webhook = made(store, None).id;
    kept(store, webhook, 1..=5);
    let asked = |after, page| {
        let part = ask(store, webhooks::DeadLetters { webhook, after, page });
        (part.entries.iter().map(|letter| letter.event).collect::<Vec<_>>(), part.more)
    };
    assert_eq!(asked(0, page(2)), (vec![1, 2], true));
    assert_eq!(asked(2, page(3)), (vec![3, 4, 5], false));
    assert_eq!(asked(5, page(3)), (vec![], false));
    let bytes = letter(1).bytes();
    assert_eq!(asked(0, Page { entries: 9, bytes: 2 * bytes }), (vec![1, 2], true));
    assert_eq!(asked(0, Page { entries: 9, bytes: 1 }), (vec![1], true), "one at least");
}

pub(super) fn letters_are_bounded(store: &dyn Store) {
    let webhook = made(store, None).id;
    kept(store, webhook, 1..=DEAD_LETTERS_MAX);
    assert_eq!(find(store, webhook).expect("it is there").dead_letters.dropped, 0);
    kept(store, webhook, [DEAD_LETTERS_MAX + 1, DEAD_LETTERS_MAX + 2]);
    let now = find(store, webhook).expect("it is there").dead_letters;
    assert_eq!((now.count, now.dropped), (DEAD_LETTERS_MAX, 2));
    assert_eq!(events(store, webhook)[0], 3, "the oldest go");
}

pub(super) fn letters_are_bounded_by_bytes(store: &dyn Store) {
    let webhook = made(store, None).id;
    claimed(store, claim(HERE, T));
    let large = |event| DeadLetter { body: vec![b'x'; 6 << 20].into(), ..letter(event) };
    for event in 1..=3 {
        let letters = vec![large(event)];
        assert_eq!(ask(store, CommitWebhook { letters, ..commit(webhook, event) }), Ok(()));
    }
    let now = find(store, webhook).expect("it is there").dead_letters;
    assert_eq!((now.count, now.bytes, now.dropped), (2, 2 * large(1).bytes() as u64, 1));
    assert!(now.bytes <= DEAD_LETTER_BYTES_MAX);
    let found = ask(store, webhooks::DeadLetters { webhook, after: 0, page: page(9) }).entries;
    assert_eq!(found.iter().map(|letter| letter.event).collect::<Vec<_>>(), [2, 3]);
}

pub(super) fn write_lasting(store: &dyn Store) {
    let webhook = made(store, Some(domain(store))).id;
    kept(store, webhook, [4]);
    let progress = WebhookProgress { cursor: 5, failures: 2, ..WebhookProgress::default() };
    assert_eq!(ask(store, CommitWebhook { progress, ..commit(webhook, 0) }), Ok(()));
}

pub(super) fn check_lasting(store: &dyn Store) {
    let [webhook] = &ask(store, Webhooks { domain: None })[..] else { panic!("there is one") };
    assert_eq!((webhook.progress.cursor, webhook.progress.failures), (5, 2));
    assert_eq!(letters(store, webhook.id), [letter(4)]);
    // Whoever held it is gone: it is somebody else's, now or when the claim has ended.
    assert_eq!(claimed(store, claim(ELSEWHERE, T.plus(1000))), [webhook.id]);
}
