//! Apps that are gone. A push service tells of many at once, such as after a release of an app: they gather here, and their registrations end together, in a few
//! writes of the store.

use crate::app::App;
use crate::values::time::now;
use carillon_core::command::{Command, Outcome};
use carillon_core::model::{
    Audience, Notification, NotificationId, Payload, Priority, PushId, PushRegistration, RegistrationId,
    bucket,
};
use carillon_core::ports::store::push::{CommitPushes, FindRegistration, PushCommit};
use carillon_wire::xml::Element;
use futures_util::{StreamExt, stream};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// An app that is gone, as a push to it found.
#[derive(Clone, Debug)]
pub(super) struct GoneApp {
    /// What the store is to be told.
    pub(super) commit: PushCommit,
    /// Its registration.
    pub(super) registration: Arc<PushRegistration>,
}

/// Those whose registrations are to be ended.
#[derive(Debug, Default)]
pub(super) struct GoneApps {
    apps: Vec<GoneApp>,
    bytes: usize,
    /// When the first and the last of them came.
    came: Option<(Instant, Instant)>,
}

impl GoneApps {
    /// Takes one.
    pub(super) fn add(&mut self, app: GoneApp, at: Instant) {
        self.bytes += bytes(&app);
        self.apps.push(app);
        self.came = Some((self.came.map_or(at, |(first, _)| first), at));
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.apps.len()
    }

    /// Whether no more should come before these are ended.
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= BYTES_MAX
    }

    /// When they are to be ended, if there are any: as soon as no more come.
    pub(super) fn due(&self) -> Option<Instant> {
        let (first, last) = self.came?;
        Some(if self.is_full() { first } else { (last + QUIET).min(first + LONGEST) })
    }

    /// Takes all of them out.
    pub(super) fn take(&mut self) -> Vec<GoneApp> {
        std::mem::take(self).apps
    }
}

/// What came of ending registrations.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// The pushes that the store was told of.
    pub(super) done: Vec<PushId>,
    /// Those that are to be ended again, since their accounts or the store could not be told.
    pub(super) again: Vec<GoneApp>,
}

/// Tells the accounts of apps that are gone, and then ends the registrations.
pub(super) async fn end(app: App, owner: u64, apps: Vec<GoneApp>) -> Ended {
    let untold = tell_accounts(&app, &apps).await;
    let is_told = |one: &GoneApp| !untold.contains(&one.registration.id);
    let (told, again): (Vec<_>, Vec<_>) = apps.into_iter().partition(is_told);
    let mut ended = Ended { done: Vec::with_capacity(told.len()), again };
    for part in told.chunks(ENDED_MAX) {
        let pushes = part.iter().map(|one| one.commit.clone()).collect();
        match app.ask(CommitPushes { owner, now: now(), pushes }).await {
            Ok(()) => ended.done.extend(part.iter().map(|one| one.commit.id)),
            Err(_) => ended.again.extend_from_slice(part),
        }
    }
    ended
}

/// Tells each account once of each of its registrations that end, all of them at once, so that these writes share commits. Those that could not be told.
async fn tell_accounts(app: &App, apps: &[GoneApp]) -> BTreeSet<RegistrationId> {
    let registrations: BTreeMap<_, _> =
        apps.iter().map(|one| (one.registration.id, one.registration.clone())).collect();
    let looks = registrations.into_values().map(|registration| {
        let app = app.clone();
        async move { (stands(&app, &registration).await, registration) }
    });
    let looked: Vec<_> = stream::iter(looks).buffer_unordered(AT_ONCE).collect().await;
    let unknown = looked.iter().filter(|(stands, _)| stands.is_none());
    let mut untold: BTreeSet<_> = unknown.map(|(_, registration)| registration.id).collect();
    let standing = looked.into_iter().filter(|(stands, _)| *stands == Some(true));
    let tells = standing.map(|(_, registration)| {
        let app = app.clone();
        async move { (tell(&app, &registration).await, registration.id) }
    });
    let told: Vec<_> = stream::iter(tells).buffer_unordered(AT_ONCE).collect().await;
    untold.extend(told.into_iter().filter(|(is_told, _)| !is_told).map(|(_, id)| id));
    untold
}

/// Whether a registration is as it was when a push to it began: its app may have made it anew meanwhile, or ended it. None if that is not known.
async fn stands(app: &App, registration: &PushRegistration) -> Option<bool> {
    let found = app.ask(FindRegistration { id: registration.id }).await.ok()?;
    Some(found.is_some_and(|found| found.created == registration.created))
}

/// Tells an account that one of its registrations ends, so that its app can make another. Whether it was told, or is not there to be told.
async fn tell(app: &App, registration: &PushRegistration) -> bool {
    let (at, account) = (now(), &registration.account);
    let ended = Element::new("ended", "urn:carillon:push:0")
        .with_attr("jid", format!("push.{}", account.domain()))
        .with_attr("node", &*registration.node)
        .with_attr("reason", "gone");
    let mut payload = Vec::new();
    ended.write(&mut payload, "");
    let random = registration.id.0 ^ registration.created.0.rotate_left(32);
    let notification = Notification {
        id: NotificationId::new(at, bucket(account.as_str()), random),
        domain: registration.domain,
        to: account.clone(),
        audience: Audience::Always,
        priority: Priority::Normal,
        expires: Some(at.plus(TOLD_MS)),
        // However often it is told, once is enough.
        collapse_key: Some(format!("push-ended-{}", registration.id).into()),
        key: None,
        payload: Payload::Xml(payload.into()),
        accepted: at,
        send_at: None,
    };
    let told = app.command(Command::Notify(notification.into())).await;
    matches!(told, Ok(Outcome::Notified(_)))
}

/// What one takes up, about, in bytes.
fn bytes(app: &GoneApp) -> usize {
    let PushRegistration { account, node, channel, .. } = &*app.registration;
    size_of::<GoneApp>()
        + size_of::<PushRegistration>()
        + account.as_str().len()
        + node.len()
        + channel.bytes()
}

/// What may be gathered, in bytes: ten thousand devices take up about a half.
const BYTES_MAX: usize = 12 << 20;
/// How long is waited for more of them.
const QUIET: Duration = Duration::from_millis(500);
/// How long they gather at most. It is short beside the time that a push is claimed for.
const LONGEST: Duration = Duration::from_secs(10);
/// Registrations that end with one write of the store: others wait for it no longer than for some tens of milliseconds.
const ENDED_MAX: usize = 2048;
/// What is asked and told at once: as much as shares a commit.
const AT_ONCE: usize = 1000;
/// For how long an account can be told that a registration has ended, in milliseconds.
const TOLD_MS: u64 = 30 * 86_400_000;

#[cfg(test)]
mod tests {
    use super::super::message::tests::{push, said};
    use super::*;
    use carillon_core::model::PushOutcome;

    fn gone(id: u64) -> GoneApp {
        let push = push(id, "https://a.example/", said("hi"));
        let commit = PushCommit {
            id: push.id,
            version: push.version,
            registration: push.registration.id,
            registered: push.registration.created,
            domain: push.registration.domain,
            local: "alice".into(),
            outcome: PushOutcome::Gone,
            step: None,
        };
        GoneApp { commit, registration: push.registration }
    }

    #[tokio::test]
    async fn they_end_together_when_no_more_come() {
        let (mut apps, begin) = (GoneApps::default(), Instant::now());
        assert_eq!((apps.due(), apps.len()), (None, 0));
        apps.add(gone(1), begin);
        assert_eq!(apps.due(), Some(begin + QUIET));
        let last = begin + Duration::from_millis(400);
        apps.add(gone(2), last);
        assert_eq!(apps.due(), Some(last + QUIET));
        // A storm does not put it off for ever.
        for n in 0..30 {
            apps.add(gone(n), begin + Duration::from_millis(400 * n));
        }
        assert_eq!(apps.due(), Some(begin + LONGEST));
        assert_eq!(apps.take().len(), 32);
        assert_eq!((apps.due(), apps.len(), apps.bytes), (None, 0, 0));
    }

    #[tokio::test]
    async fn they_end_at_once_when_they_take_up_too_much() {
        let (mut apps, at) = (GoneApps::default(), Instant::now());
        while !apps.is_full() {
            apps.add(gone(1), at);
        }
        assert_eq!(apps.due(), Some(at));
        assert!(apps.len() > 10_000, "{}", apps.len());
    }
}
