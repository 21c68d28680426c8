//! The push services as they are seen from here: each by the host of its URLs, or by its app, with what waits for it and whether it answers. Pure, so that it can
//! be tested without waiting.

use carillon_core::model::{Push, PushChannel, UnixMs};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

/// All push services for which something waits, or which do not answer.
#[derive(Debug, Default)]
pub(super) struct Gateways {
    by_host: BTreeMap<Arc<str>, Gateway>,
    /// The one that was last given a turn.
    last: Option<Arc<str>>,
    /// Requests under way that have a thread each.
    threads: usize,
}

/// One push service.
#[derive(Debug, Default)]
struct Gateway {
    waiting: VecDeque<Push>,
    under_way: usize,
    /// Whether its requests share a connection. Others have a thread each.
    is_shared: bool,
    /// Requests in a row that it did not answer, or answered by an error of its own.
    failures: u32,
    /// Nothing is sent to it before this time.
    closed_until: Option<UnixMs>,
    /// When it last answered, or first had something to be sent.
    answered: UnixMs,
}

impl Gateways {
    /// Takes a push for its push service. One for which there is no room, or whose push service does not answer, is given back, with when it is to be tried.
    pub(super) fn add(&mut self, push: Push, now: UnixMs) -> Result<(), (Push, UnixMs)> {
        let channel = &push.registration.channel;
        let gateway = self.by_host.entry(service(channel).into()).or_insert_with(|| Gateway {
            is_shared: matches!(channel, PushChannel::App(_)),
            answered: now,
            ..Gateway::default()
        });
        if let Some(until) = gateway.closed_until.filter(|until| *until > now) {
            return Err((push, until));
        }
        if gateway.waiting.len() >= WAITING_MAX {
            return Err((push, now.plus(CROWDED_MS)));
        }
        gateway.waiting.push_back(push);
        Ok(())
    }

    /// Gives back all that waits.
    pub(super) fn take_all(&mut self) -> Vec<Push> {
        self.by_host.values_mut().flat_map(|gateway| gateway.waiting.drain(..)).collect()
    }

    /// The next push to be sent, if one may be sent now. Push services take turns.
    pub(super) fn next(&mut self) -> Option<(Arc<str>, Push)> {
        let last = self.last.clone().unwrap_or_default();
        let later = self.by_host.range::<Arc<str>, _>((Excluded(&last), Unbounded));
        let mut in_turn = later.chain(self.by_host.range::<Arc<str>, _>(..=&last));
        let threads = self.threads < THREADS_MAX;
        let is_ready = |gateway: &Gateway| gateway.is_ready() && (threads || gateway.is_shared);
        let host = in_turn.find(|(_, gateway)| is_ready(gateway)).map(|(host, _)| host.clone())?;
        let gateway = self.by_host.get_mut(&host)?;
        gateway.under_way += 1;
        self.threads += usize::from(!gateway.is_shared);
        self.last = Some(host.clone());
        Some((host, gateway.waiting.pop_front()?))
    }

    /// A request has come to its end, which the push service `answered` or not; or none was made. If the push service fails too often it gets nothing for a while: what waits for it is given back, with until when. What fails
    /// while it gets nothing was under way before, and says nothing new.
    /// `random` gives a number from 0 to the one that it is given.
    pub(super) fn done(
        &mut self,
        host: &str,
        answered: Option<bool>,
        now: UnixMs,
        random: impl FnOnce(u64) -> u64,
    ) -> Option<(Vec<Push>, UnixMs)> {
        let gateway = self.by_host.get_mut(host)?;
        gateway.under_way = gateway.under_way.saturating_sub(1);
        self.threads = self.threads.saturating_sub(usize::from(!gateway.is_shared));
        let mut back = None;
        if answered == Some(true) {
            (gateway.failures, gateway.closed_until, gateway.answered) = (0, None, now);
        } else if answered == Some(false) && gateway.closed_until.is_none_or(|until| until <= now) {
            gateway.failures = gateway.failures.saturating_add(1);
            if gateway.failures >= FAILURES_MAX {
                let doubled = CLOSED_FIRST_MS << (gateway.failures - FAILURES_MAX).min(6);
                let until = now.plus(doubled / 2 + random(doubled / 2));
                gateway.closed_until = Some(until);
                back = Some((gateway.waiting.drain(..).collect(), until));
            }
        }
        if gateway.is_idle() {
            self.by_host.remove(host);
        }
        back
    }

    /// Whether one that answers has enough to do: more would wait here or be put off, and it is better found when it can be sent. One that does not answer holds
    /// up nobody: what it has no room for is put off.
    pub(super) fn has_enough(&self, now: UnixMs) -> bool {
        let is_busy =
            |gateway: &Gateway| gateway.waiting.len() >= ENOUGH && gateway.answered.plus(ANSWERS_MS) > now;
        self.by_host.values().any(is_busy)
    }

    /// Forgets those of which nothing has to be known.
    pub(super) fn tidy(&mut self, now: UnixMs) {
        self.by_host.retain(|_, gateway| {
            let is_busy = !gateway.waiting.is_empty() || gateway.under_way > 0;
            is_busy || gateway.closed_until.is_some_and(|until| until.plus(FORGOTTEN_MS) > now)
        });
    }

    /// Those that get nothing now.
    pub(super) fn closed(&self, now: UnixMs) -> usize {
        self.by_host.values().filter(|gateway| gateway.closed_until.is_some_and(|until| until > now)).count()
    }

    /// Pushes that wait here.
    #[cfg(test)]
    fn waiting(&self) -> usize {
        self.by_host.values().map(|gateway| gateway.waiting.len()).sum()
    }
}

impl Gateway {
    /// How many requests may be under way: one while it is not known whether it answers again.
    fn room(&self) -> usize {
        match self.is_shared {
            _ if self.failures >= FAILURES_MAX => 1,
            true => STREAMS_MAX,
            false => UNDER_WAY_MAX,
        }
    }

    /// Whether something waits for it that may be sent now.
    fn is_ready(&self) -> bool {
        !self.waiting.is_empty() && self.under_way < self.room()
    }

    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.under_way == 0 && self.failures == 0
    }
}

/// What names the push service of a channel: scheme, host and port of its URLs, or its name and the app's.
fn service(channel: &PushChannel) -> String {
    match channel {
        PushChannel::WebPush(keys) => origin(&keys.endpoint).to_ascii_lowercase(),
        PushChannel::Webhook { url, .. } => origin(url).to_ascii_lowercase(),
        PushChannel::App(device) => format!("{}:{}", device.service.as_str(), device.app),
    }
}

/// What names the push service of a URL: its scheme, host and port.
pub(super) fn origin(url: &str) -> &str {
    let begin = url.find("://").map_or(0, |at| at + 3);
    let end = url[begin..].find(['/', '?', '#']).map_or(url.len(), |at| begin + at);
    &url[..end]
}

/// Pushes that wait for one push service in memory.
pub(super) const WAITING_MAX: usize = 512;
/// Of which so many are enough for one that has answered within so many milliseconds.
const ENOUGH: usize = 256;
const ANSWERS_MS: u64 = 1000;
/// Requests to one push service at once.
pub(super) const UNDER_WAY_MAX: usize = 32;
/// Requests at once over one connection.
const STREAMS_MAX: usize = 256;
/// Requests at once that have a thread each.
const THREADS_MAX: usize = 64;
/// When one is tried for which there was no room, in milliseconds.
const CROWDED_MS: u64 = 1000;
/// Failures in a row after which a push service gets nothing for a while.
const FAILURES_MAX: u32 = 5;
/// For how long at first, in milliseconds; twice as long after each further failure.
const CLOSED_FIRST_MS: u64 = 4000;
/// How long is remembered that a push service did not answer, in milliseconds.
const FORGOTTEN_MS: u64 = 600_000;

#[cfg(test)]
mod tests {
    use super::super::message::tests::{push, said};
    use super::*;
    use carillon_core::model::{AppService, AppToken, PushRegistration, PushSecret};

    const NOW: UnixMs = UnixMs(1_795_167_000_000);

    fn add(gateways: &mut Gateways, id: u64, host: &str) -> bool {
        gateways.add(push(id, &format!("https://{host}/{id}"), said("hi")), NOW).is_ok()
    }

    fn next(gateways: &mut Gateways) -> Option<u64> {
        gateways.next().map(|(_, push)| push.id.0)
    }

    #[test]
    fn push_services_take_turns() {
        let mut gateways = Gateways::default();
        for id in 0..100 {
            assert!(add(&mut gateways, id, "a.example"));
        }
        assert!(add(&mut gateways, 200, "B.example") && add(&mut gateways, 201, "b.example"));
        let first: Vec<_> = std::iter::from_fn(|| next(&mut gateways)).collect();
        assert_eq!(first[..5], [0, 200, 1, 201, 2]);
        assert_eq!(first.len(), UNDER_WAY_MAX + 2);
        assert_eq!(gateways.done("https://a.example", Some(true), NOW, |most| most), None);
        assert_eq!((next(&mut gateways), next(&mut gateways)), (Some(32), None));
    }

    #[test]
    fn one_that_fails_gets_nothing_for_a_while_and_then_one() {
        let mut gateways = Gateways::default();
        (0..20).for_each(|id| assert!(add(&mut gateways, id, "a.example")));
        for _ in 0..5 {
            next(&mut gateways);
        }
        for _ in 0..4 {
            assert_eq!(gateways.done("https://a.example", Some(false), NOW, |most| most), None);
        }
        let (back, until) =
            gateways.done("https://a.example", Some(false), NOW, |most| most).expect("it is closed");
        assert_eq!((back.len(), until, gateways.closed(NOW)), (15, NOW.plus(4000), 1));
        let refused =
            gateways.add(push(30, "https://a.example/30", said("hi")), NOW).expect_err("it is closed");
        assert_eq!(refused.1, until);
        // Others are not held up.
        assert!(add(&mut gateways, 31, "b.example"));
        assert_eq!(next(&mut gateways), Some(31));
        for id in 40..50 {
            assert!(gateways.add(push(id, "https://a.example/", said("hi")), until).is_ok());
        }
        assert_eq!((next(&mut gateways), next(&mut gateways)), (Some(40), None));
        let (_, longer) =
            gateways.done("https://a.example", Some(false), until, |most| most).expect("it is closed");
        assert_eq!(longer, until.plus(8000));
        assert!(gateways.add(push(50, "https://a.example/", said("hi")), longer).is_ok());
        assert_eq!(next(&mut gateways), Some(50));
        assert_eq!(gateways.done("https://a.example", Some(true), longer, |most| most), None);
        gateways.done("https://b.example", Some(true), NOW, |most| most);
        gateways.tidy(longer);
        assert!(gateways.by_host.is_empty());
    }

    #[test]
    fn what_was_under_way_when_it_failed_says_nothing_new() {
        let mut gateways = Gateways::default();
        (0..40).for_each(|id| assert!(add(&mut gateways, id, "a.example")));
        while next(&mut gateways).is_some() {}
        let closed =
            (0..32).filter_map(|_| gateways.done("https://a.example", Some(false), NOW, |most| most));
        assert_eq!(
            closed.map(|(back, until)| (back.len(), until)).collect::<Vec<_>>(),
            [(8, NOW.plus(4000))]
        );
    }

    #[test]
    fn requests_that_share_a_connection_take_no_threads() {
        let mut gateways = Gateways::default();
        let to_app = |id| {
            let mut push = push(id, "https://unused.example/", said("hi"));
            let token = AppToken {
                service: AppService::Apns,
                app: "chat".into(),
                token: PushSecret((*b"a1").into()),
            };
            let registration =
                PushRegistration { channel: PushChannel::App(token), ..(*push.registration).clone() };
            push.registration = registration.into();
            push
        };
        (0..300).for_each(|id| assert!(gateways.add(to_app(id), NOW).is_ok()));
        for host in ["a.example", "b.example", "c.example"] {
            (400..440).for_each(|id| assert!(add(&mut gateways, id, host)));
        }
        let started: Vec<u64> = std::iter::from_fn(|| next(&mut gateways)).collect();
        let to_apps = started.iter().filter(|id| **id < 400).count();
        assert_eq!((to_apps, started.len() - to_apps), (STREAMS_MAX, THREADS_MAX));
        gateways.done("https://a.example", Some(true), NOW, |most| most);
        assert!(next(&mut gateways).is_some_and(|id| id >= 400), "there is room for one");
        assert_eq!(next(&mut gateways), None);
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut gateways = Gateways::default();
        let taken = (0..1000).filter(|id| add(&mut gateways, *id, "a.example")).count();
        assert_eq!((taken, gateways.waiting()), (WAITING_MAX, WAITING_MAX));
        assert!(add(&mut gateways, 1001, "b.example"));
    }

    #[test]
    fn who_answers_is_given_no_more_than_it_takes_soon() {
        let mut gateways = Gateways::default();
        (0..ENOUGH as u64)
            .for_each(|id| assert!(!gateways.has_enough(NOW) && add(&mut gateways, id, "a.example")));
        assert!(gateways.has_enough(NOW.plus(ANSWERS_MS - 1)));
        // It hangs: others are not held up.
        assert!(!gateways.has_enough(NOW.plus(ANSWERS_MS)));
        assert!(next(&mut gateways).is_some() && add(&mut gateways, 999, "a.example"));
        gateways.done("https://a.example", Some(true), NOW.plus(5000), |most| most);
        assert!(gateways.has_enough(NOW.plus(5000)));
        next(&mut gateways);
        assert!(!gateways.has_enough(NOW.plus(5000)));
    }

    #[test]
    fn a_push_service_is_its_origin() {
        assert_eq!(origin("https://push.example:444/a?b"), "https://push.example:444");
        assert_eq!(origin("https://push.example"), "https://push.example");
        assert_eq!(origin("https://push.example?x"), "https://push.example");
    }
}
