//! Idempotency keys.

use super::ground::*;
use super::keys;
use carillon_core::model::*;
use carillon_core::ports::Store;

const KEY: KeyId = KeyId(5);
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

fn reserve_as(store: &dyn Store, key: KeyId, name: &str, body: u8, now: UnixMs) -> Reservation {
    let question =
        Reserve { key, idempotency_key: name.into(), body_hash: [body; 32], kept_bytes_max: u64::MAX, now };
    ask(store, question)
}

fn reserve(store: &dyn Store, body: u8, now: UnixMs) -> Reservation {
    reserve_as(store, KEY, "order-1", body, now)
}

fn remember(store: &dyn Store, response: &str) {
    let idempotency_key = "order-1".into();
    done(store, Remember { key: KEY, idempotency_key, response: response.to_owned().into() });
}

pub(super) fn first_goes(store: &dyn Store) {
    assert_eq!(reserve(store, 1, T), Reservation::Go { since: T });
    assert_eq!(reserve_as(store, KEY, "order-2", 1, T), Reservation::Go { since: T });
    remember(store, "{}");
    let idempotency_key = "never reserved".into();
    done(store, Remember { key: KEY, idempotency_key, response: "{}".into() });
}

pub(super) fn second_waits_then_goes(store: &dyn Store) {
    let minute = 60_000;
    reserve(store, 1, T);
    assert_eq!(reserve(store, 1, T), Reservation::InProgress);
    assert_eq!(reserve(store, 1, T.plus(minute - 1)), Reservation::InProgress);
    let go = Reservation::Go { since: T };
    assert_eq!(reserve(store, 1, T.plus(minute)), go, "the first has died; ids are made as it made them");
    assert_eq!(reserve(store, 1, T.plus(minute + 1)), Reservation::InProgress, "and this one is on its way");
    assert_eq!(reserve(store, 1, T.plus(2 * minute)), go);
    let earlier = UnixMs(T.0 - 5);
    assert_eq!(reserve(store, 1, earlier), Reservation::InProgress, "a clock that went back is no new day");
}

pub(super) fn finished_is_replayed(store: &dyn Store) {
    reserve(store, 1, T);
    remember(store, "207 {\"é\": 1}");
    let replay = Reservation::Replay { response: "207 {\"é\": 1}".into() };
    for ms in [0, 1, 60_000, DAY_MS - 1] {
        assert_eq!(reserve(store, 1, T.plus(ms)), replay);
    }
}

pub(super) fn other_body_is_refused(store: &dyn Store) {
    reserve(store, 1, T);
    assert_eq!(reserve(store, 2, T), Reservation::Mismatch);
    assert_eq!(reserve(store, 2, T.plus(60_000)), Reservation::Mismatch);
    remember(store, "{}");
    assert_eq!(reserve(store, 2, T.plus(1)), Reservation::Mismatch);
    assert_eq!(reserve(store, 1, T.plus(1)), Reservation::Replay { response: "{}".into() });
}

pub(super) fn is_forgotten_after_a_day(store: &dyn Store) {
    reserve(store, 1, T);
    remember(store, "{}");
    let tomorrow = T.plus(DAY_MS);
    assert_eq!(reserve(store, 2, tomorrow), Reservation::Go { since: tomorrow });
    assert_eq!(reserve(store, 2, tomorrow), Reservation::InProgress, "nothing is left of the first");
    let swept = |now| ask(store, Sweep { now, forget: UnixMs(0), max: 9 }).more;
    assert!(!swept(tomorrow.plus(DAY_MS - 1)));
    assert_eq!(reserve(store, 1, tomorrow.plus(1)), Reservation::Mismatch, "a sweep takes only what is over");
    assert!(!swept(tomorrow.plus(DAY_MS)));
    assert_eq!(reserve(store, 1, tomorrow.plus(2)), Reservation::Go { since: tomorrow.plus(2) });
}

pub(super) fn is_of_its_key(store: &dyn Store) {
    reserve(store, 1, T);
    assert_eq!(reserve_as(store, KeyId(6), "order-1", 2, T), Reservation::Go { since: T });
    assert_eq!(reserve_as(store, KEY, "ORDER-1", 2, T), Reservation::Go { since: T });
}

pub(super) fn released_stays_released(store: &dyn Store) {
    reserve(store, 1, T);
    assert_eq!(lines_at(store, &[(1, 10)], T.plus(1)), NONE);
    done(store, Release { key: KEY, idempotency_key: "order-1".into() });
    // It was on its way when its request was given up.
    assert_eq!(lines_at(store, &[(2, 20)], T.plus(2)), NONE);
    assert_eq!(reserve(store, 1, T.plus(3)), Reservation::Go { since: T });
    assert_eq!(lines_at(store, &[(1, 11), (2, 21)], T.plus(4)), [1], "what was noted before stays");
}

pub(super) fn released_goes_at_once(store: &dyn Store) {
    let release = |name: &str| done(store, Release { key: KEY, idempotency_key: name.into() });
    release("never reserved");
    reserve(store, 1, T);
    release("order-1");
    assert_eq!(reserve(store, 2, T.plus(1)), Reservation::Mismatch);
    assert_eq!(
        reserve(store, 1, T.plus(1)),
        Reservation::Go { since: T },
        "ids are made as the first made them"
    );
    assert_eq!(reserve(store, 1, T.plus(2)), Reservation::InProgress, "and it is reserved again");
    remember(store, "{}");
    release("order-1");
    let replay = Reservation::Replay { response: "{}".into() };
    assert_eq!(reserve(store, 1, T.plus(3)), replay, "a response stays");
}

const NONE: [u64; 0] = [];

fn lines_at(store: &dyn Store, lines: &[(u64, u64)], now: UnixMs) -> Vec<u64> {
    let lines = lines.iter().map(|&(number, digest)| LineDigest { number, digest }).collect();
    ask(store, NoteLines { key: KEY, idempotency_key: "order-1".into(), lines, now })
}

pub(super) fn notes_lines(store: &dyn Store) {
    let lines = |lines: &[(u64, u64)]| lines_at(store, lines, T);
    reserve(store, 1, T);
    assert_eq!(lines(&[]), NONE);
    assert_eq!(lines(&[(1, 10), (3, 30), (1000, u64::MAX)]), NONE);
    assert_eq!(lines(&[(1, 10), (3, 30), (1000, u64::MAX)]), NONE);
    assert_eq!(lines(&[(1, 11), (2, 20), (3, 31), (4, 40), (1000, 1)]), [1, 3, 1000]);
    assert_eq!(lines(&[(1, 10), (2, 21), (3, 30), (4, 40), (1000, u64::MAX)]), [2], "what was first stays");
    let many = |digest| (1..=1000).map(|n| (n + 5000, digest + n)).collect::<Vec<_>>();
    assert_eq!(lines(&many(1)), NONE);
    assert_eq!(lines(&many(2)), (5001..=6000).collect::<Vec<_>>());
    let last = |digest| lines(&[(LINES_MAX, digest), (LINES_MAX + 1, digest)]);
    assert_eq!(last(1), NONE);
    assert_eq!(last(2), [LINES_MAX], "no more are noted");
    // Of another request, which has none.
    let lines = vec![LineDigest { number: 1, digest: 99 }];
    let never =
        NoteLines { key: KEY, idempotency_key: "never reserved".into(), lines: lines.clone(), now: T };
    assert_eq!(ask(store, never), NONE);
    reserve_as(store, KEY, "order-2", 1, T);
    assert_eq!(ask(store, NoteLines { key: KEY, idempotency_key: "order-2".into(), lines, now: T }), NONE);
}

pub(super) fn lines_renew_it_and_go_with_it(store: &dyn Store) {
    reserve(store, 1, T);
    let later = T.plus(59_000);
    assert_eq!(lines_at(store, &[(1, 10)], later), NONE);
    assert_eq!(reserve(store, 1, T.plus(60_000)), Reservation::InProgress, "it is being worked on");
    assert_eq!(reserve(store, 1, later.plus(60_000)), Reservation::Go { since: T });
    assert_eq!(lines_at(store, &[(1, 11)], later), [1], "known to who comes after");
    let tomorrow = T.plus(DAY_MS);
    assert_eq!(reserve(store, 1, tomorrow), Reservation::Go { since: tomorrow });
    assert_eq!(lines_at(store, &[(1, 11)], tomorrow), NONE, "another request");
    ask(store, Sweep { now: tomorrow.plus(DAY_MS), forget: UnixMs(0), max: 9 });
    reserve(store, 1, tomorrow);
    assert_eq!(lines_at(store, &[(1, 12)], tomorrow), NONE);
}

pub(super) fn are_bounded_in_bytes(store: &dyn Store) {
    let scopes = Scopes::of(&[Scope::Send]);
    let (name, node_keys_max) = ("sender".into(), NODE_KEYS_MAX);
    let create = CreateKey {
        hash: [1; 32],
        name,
        domain: None,
        scopes,
        expires: None,
        networks: Box::default(),
        certificates: Box::default(),
        node_keys_max,
        now: T,
    };
    let key = answer!(ask(store, create), CreateKeyAnswer::Created(key) => key).id;
    let reserve = |name: &str, kept_bytes_max, now| {
        ask(store, Reserve { key, idempotency_key: name.into(), body_hash: [1; 32], kept_bytes_max, now })
    };
    let go = |since| Reservation::Go { since };
    // Its name, and what is noted under it.
    let each = ENTRY_BYTES + 1;
    assert_eq!(reserve("a", 1, T), go(T));
    assert_eq!(reserve("b", each, T), Reservation::Full);
    assert_eq!(reserve("b", each + 1, T), go(T));
    let idempotency_key: Box<str> = "b".into();
    done(store, Remember { key, idempotency_key: idempotency_key.clone(), response: "207 {}".into() });
    done(store, Remember { key, idempotency_key, response: "{}".into() });
    assert_eq!(reserve("c", 2 * each + 2, T), Reservation::Full);
    let lines = |numbers: std::ops::Range<u64>| {
        let lines = numbers.map(|number| LineDigest { number, digest: number }).collect();
        let altered = ask(store, NoteLines { key, idempotency_key: "a".into(), lines, now: T });
        assert_eq!(altered, Vec::<u64>::new());
    };
    lines(1..11);
    lines(5..21);
    let kept = 2 * each + 2 + 20 * 8;
    assert_eq!(reserve("c", kept, T), Reservation::Full);
    assert_eq!(reserve("c", kept + 1, T), go(T));
    // What is there is no new one, whoever has how much.
    assert_eq!(reserve("b", 1, T), Reservation::Replay { response: "{}".into() });
    // What is forgotten, or used again a day later, makes room, with its lines.
    let later = T.plus(DAY_MS);
    assert_eq!(reserve("a", 2 * each + 3, later), go(later));
    ask(store, Sweep { now: later, forget: UnixMs(0), max: 100 });
    assert_eq!(reserve("d", each, later), Reservation::Full);
    assert_eq!(reserve("d", each + 1, later), go(later));
}

pub(super) fn are_bounded_for_a_domain(store: &dyn Store) {
    const MAX: u64 = 16 * (ENTRY_BYTES + 2);
    let (here, there) = (domain(store), domain_named(store, "other.example"));
    let create = |seed: u8, domain| {
        answer!(ask(store, keys::create(seed, domain)), CreateKeyAnswer::Created(key) => key).id
    };
    let reserve = |key, n: u64| {
        let idempotency_key = format!("{n:02}").into();
        ask(store, Reserve { key, idempotency_key, body_hash: [1; 32], kept_bytes_max: MAX, now: T })
    };
    let go = Reservation::Go { since: T };
    let large: Vec<KeyId> = (1..=5).map(|seed| create(seed, Some(here))).collect();
    let (small, elsewhere, of_node) = (create(6, Some(here)), create(7, Some(there)), create(8, None));
    // Each has less than it may have; together they have what the domain may have.
    for key in &large {
        for n in 0..12 {
            assert_eq!(reserve(*key, n), go);
        }
    }
    for n in 12..16 {
        assert_eq!(reserve(large[0], n), go);
    }
    for key in &large[1..] {
        assert_eq!(reserve(*key, 12), Reservation::Full);
    }
    // One that has next to nothing goes on, as do others' keys, and what was reserved is there.
    assert_eq!(reserve(small, 0), go);
    assert_eq!(reserve(small, 1), Reservation::Full);
    for key in [elsewhere, of_node] {
        for n in 0..3 {
            assert_eq!(reserve(key, n), go);
        }
    }
    assert_eq!(reserve(large[1], 0), Reservation::InProgress);
    // A key that is deleted makes room.
    ask(store, DeleteKey { id: large[4] }).expect("it is there");
    assert_eq!(reserve(large[1], 12), go);
}
