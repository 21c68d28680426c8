//! Many questions at once: order, atomicity, and one answer each.

use super::ground::*;
use carillon_core::model::*;
use carillon_core::ports::store::{Question, domains};
use carillon_core::ports::{Answer, Ask, Reply, Store};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Among writes that share a commit, one that a store cannot do changes nothing and harms none.
pub(super) fn what_fails_changes_nothing(store: &dyn Store) {
    let domain = domain(store);
    let bad = || {
        let good = ImportedAccount { local: "half".into(), credentials: keys(1) };
        // A store may refuse a local part that was not prepared or take it; it may not do half.
        let unprepared = ImportedAccount { local: "Not@Prepared/".into(), credentials: keys(1) };
        ImportAccounts { domain, accounts: vec![good, unprepared], now: T }
    };
    let (mut good_ones, mut bad_ones) = (Vec::new(), Vec::new());
    for n in 0..60 {
        match n % 10 {
            7 => bad_ones.push(asked(store, bad())),
            _ => good_ones.push(asked(store, create_account(domain, &format!("u{n}")))),
        }
    }
    for receiver in &good_ones {
        answer!(waited(receiver), CreateAccountAnswer::Created(_) => ());
    }
    let mut failed = false;
    for receiver in &bad_ones {
        match answered(receiver) {
            Err(Fault::Broken) => failed = true,
            Ok(Ok(())) => {}
            other => panic!("{other:?}"),
        }
    }
    for n in (0..60).filter(|n| n % 10 != 7) {
        login(store, domain, &format!("u{n}"));
    }
    if failed {
        missing(store, identity_ask(domain, "half"));
    }
    answer!(ask(store, create_account(domain, "after")), CreateAccountAnswer::Created(_) => ());
}

/// Notifications asked for in one go are kept and ended as they would be one after the other: with accounts that are not
/// there, ids that were there before, keys that replace, bounds that are reached, and ends that come twice.
pub(super) fn together_is_as_one_after_the_other(store: &dyn Store) {
    let domain = domain(store);
    let run = |base: u64, ask_them: &dyn Fn(Vec<Ask>) -> Vec<Answer>| {
        for n in 0..3 {
            account(store, domain, &format!("u{base}-{n}"));
        }
        let told = ask_them(notifications(domain, base)).iter().map(|answer| summary(answer, base)).collect();
        let left: Vec<Vec<u64>> = (0..3)
            .map(|n| {
                let left = waiting(store, domain, &format!("u{base}-{n}"), T);
                left.into_iter().map(|id| number(id, base)).collect()
            })
            .collect();
        let states: Vec<_> = (0..200)
            .map(|n| ask(store, trace_ask(id(base + n))))
            .map(|trace| trace.map(|trace| (trace.state, trace.acknowledged_by, trace.sent)))
            .collect();
        let told: Vec<String> = told;
        (told, left, states)
    };
    let alone = run(1_000, &|asks| asks.into_iter().map(|question| ask_one(store, question)).collect());
    let together = run(2_000, &|asks| {
        let (sender, receiver) = std::sync::mpsc::channel();
        let count = asks.len();
        let mut questions: Vec<(Ask, Reply<Answer>)> = asks
            .into_iter()
            .map(|question| {
                let sender = sender.clone();
                (question, Box::new(move |answer| drop(sender.send(answer))) as Reply<Answer>)
            })
            .collect();
        store.ask_all(&mut questions);
        assert!(questions.is_empty());
        (0..count).map(|_| receiver.recv().expect("each is answered")).collect()
    });
    assert_eq!(alone, together);
}

fn ask_one(store: &dyn Store, ask: Ask) -> Answer {
    let (sender, receiver) = std::sync::mpsc::channel();
    store.ask(ask, Box::new(move |answer| drop(sender.send(answer))));
    receiver.recv().expect("it is answered")
}

/// Two hundred to be kept, then ends for most of them, some twice.
fn notifications(domain: DomainId, base: u64) -> Vec<Ask> {
    let keep = |n: u64| {
        let owner = if n % 67 == 66 { "nobody".to_owned() } else { format!("u{base}-{}", n % 3) };
        let mut notification = notification(domain, &owner, base + n);
        notification.accepted = T.plus(n);
        if n % 71 == 70 {
            notification.id = id(base + n - 1);
        }
        if n % 50 < 2 {
            notification.collapse_key = Some("key".into());
        }
        Ask::from(StoreNotification { notification: notification.into(), queue_max: 60, now: T, wake: None })
    };
    let end = |n: u64| {
        let change = NotificationChange { at: T.plus(n), ..acknowledged(id(base + n % 150)) };
        EndNotifications { changes: vec![change] }.into()
    };
    (0..200).map(keep).chain((0..170).map(end)).collect()
}

fn summary(answer: &Answer, base: u64) -> String {
    use carillon_core::ports::store::notifications::Answer as About;
    match answer {
        Answer::Notifications(About::StoreNotification(StoreNotificationAnswer::Stored { ended })) => {
            let ended: Vec<_> = ended.iter().map(|trace| (number(trace.id, base), trace.state)).collect();
            format!("stored {ended:?}")
        }
        Answer::Notifications(About::EndNotifications(otherwise)) => {
            let otherwise: Vec<_> = otherwise.iter().map(|id| number(*id, base)).collect();
            format!("all ended but {otherwise:?}")
        }
        other => format!("{other:?}"),
    }
}

fn number(id: NotificationId, base: u64) -> u64 {
    (id.0 as u64).wrapping_sub(base)
}

pub(super) fn writes_are_in_order(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    let (sender, receiver) = std::sync::mpsc::channel();
    for n in 0..2001_u64 {
        let sender = sender.clone();
        let credentials = Credentials { sha256: None, ..keys((n % 256) as u8) };
        let question = match n % 3 {
            0 => SetCredentials { domain, local: "alice".into(), credentials }.into(),
            1 => store_at(notification(domain, "alice", n), T).into(),
            _ => EndNotifications { changes: vec![acknowledged(id(n - 1))] }.into(),
        };
        store.ask(question, Box::new(move |answer| drop(sender.send((n, answer)))));
    }
    for n in 0..2001 {
        let (answered, answer) = receiver.recv().expect("each is answered");
        assert_eq!(answered, n, "answers come in the order of the questions");
        let said = match n % 3 {
            0 => SetCredentials::answer(answer).map(|answer| answer.said()),
            1 => StoreNotification::answer(answer).map(|answer| answer.said()),
            _ => EndNotifications::answer(answer).map(|otherwise| Some(otherwise.is_empty())),
        };
        assert_eq!(said, Ok(Some(true)), "{n}");
    }
    assert!(waiting(store, domain, "alice", T).is_empty(), "each was ended after it was stored");
    assert_eq!(
        identity(store, domain, "alice").credentials.sha1,
        keys((1998 % 256) as u8).sha1,
        "the last one holds"
    );
}

pub(super) fn reads_see_answered_writes(store: &dyn Store) {
    let domain = domain(store);
    let writers = 4;
    thread::scope(|scope| {
        for writer in 0..writers {
            scope.spawn(move || {
                for n in 0..50 {
                    let local = format!("w{writer}-{n}");
                    account(store, domain, &local);
                    login(store, domain, &local);
                    done(
                        store,
                        DeleteAccount {
                            domain,
                            local: local.as_str().into(),
                            now: T,
                            held_until: T,
                            rows_max: u32::MAX,
                        },
                    );
                    missing(store, identity_ask(domain, &local));
                }
            });
        }
    });
}

pub(super) fn many_threads(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    let news = topic(store, domain, "news");
    thread::scope(|scope| {
        for thread in 0..8_u64 {
            scope.spawn(move || {
                for n in 0..50 {
                    let n = thread * 1000 + n;
                    answer!(ask(store, store_at(notification(domain, "alice", n), T)), StoreNotificationAnswer::Stored { .. } => ());
                    publish(store, news, domain, &n.to_string(), 5);
                    if n % 2 == 0 {
                        end(store, vec![acknowledged(id(n))]);
                    }
                    login(store, domain, "alice");
                }
            });
        }
    });
    assert_eq!(waiting(store, domain, "alice", T).len(), 8 * 25);
    assert_eq!(item_ids(store, news).len(), 5);
}

pub(super) fn each_question_is_answered_once(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    let answers = Arc::new(AtomicU64::new(0));
    let count = 5000;
    for n in 0..count {
        let question = match n % 3 {
            0 => Ask::from(identity_ask(domain, "alice")),
            1 => store_at(notification(domain, "alice", n), T).into(),
            _ => Topic { domain, name: "none".into() }.into(),
        };
        let answers = answers.clone();
        store.ask(
            question,
            Box::new(move |_| {
                answers.fetch_add(1, Ordering::SeqCst);
            }),
        );
    }
    store.close();
    assert_eq!(answers.load(Ordering::SeqCst), count, "closing answers all that wait");
}

pub(super) fn generations_and_revisions_do_not_go_back(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    let news = topic(store, domain, "news");
    subscribe(store, news, domain, "alice");
    thread::scope(|scope| {
        let publisher = scope.spawn(|| {
            for n in 0..300 {
                publish(store, news, domain, &n.to_string(), 1);
            }
        });
        let (mut generation, mut revision) = (Generation(0), Revision(0));
        while !publisher.is_finished() {
            let found = login(store, domain, "alice");
            assert!(found.generation >= generation);
            generation = found.generation;
            if let Some(last) = &found.subscriptions[0].last {
                assert!(last.revision >= revision);
                revision = last.revision;
            }
        }
    });
    let last = login(store, domain, "alice").subscriptions[0].last.clone().expect("an item");
    assert_eq!(&*last.id, "299");
}

pub(super) fn closed_answers_closed(store: &dyn Store) {
    let domain = domain(store);
    let waiting: Vec<_> = (0..100).map(|n| asked(store, create_account(domain, &format!("u{n}")))).collect();
    store.close();
    for receiver in &waiting {
        answer!(waited(receiver), CreateAccountAnswer::Created(_) => ());
    }
    for question in [domains::Domains.into(), create_account(domain, "late").into()] {
        answer!(ask_one(store, question), Answer::Failed(Fault::Closed) => ());
    }
    store.close();
}
