//! Registrations for push (XEP-0357), and the pushes that wait.
//!
//! What is to be pushed comes with what is stored: [`StoreOffline`](super::offline::StoreOffline),
//! [`StoreNotification`](super::notifications::StoreNotification) and [`KeepRoomMessage`](super::rooms::KeepRoomMessage) make, in their commits, a push for
//! each registration of their account that wants to be woken by such things, in place of the one of the same topic that waits. Registrations that want every
//! message of a room are found by the room.

#![expect(missing_docs, reason = "the sentence of a question says what its fields are")]

use super::question::questions;
use super::{Load, Loads, Page, Part};
use crate::model::{
    DomainId, NotificationId, Push, PushChannel, PushId, PushOutcome, PushRegistration, PushShown, PushStep,
    PushWakes, RegistrationId, RoomKind, UnixMs,
};

questions! {
    Push,
    reads {
        FindRegistration => Option<Box<PushRegistration>>,
        ListRegistrations => Part<PushRegistration>,
        NextPush => Option<UnixMs>,
        PushSteps => Vec<PushStep>,
    }
    writes {
        EnablePush => EnablePushAnswer,
        DisablePush => (),
        ClaimPushes => Vec<Push>,
        CommitPushes => (),
    }
    once {
    }
    loads {
        EnablePush,
    }
}

/// The registration of this number.
#[derive(Clone, Debug)]
pub struct FindRegistration {
    pub id: RegistrationId,
}

/// Registrations with higher numbers than `after`, by their numbers: those of `account`, or of `domain`, or all; at most `max`.
#[derive(Clone, Debug)]
pub struct ListRegistrations {
    pub domain: Option<DomainId>,
    /// Its local part; of `domain`.
    pub account: Option<Box<str>>,
    pub after: RegistrationId,
    pub max: u16,
}

/// When the next push is due; none if none waits.
#[derive(Clone, Debug)]
pub struct NextPush;

/// The pushes of a notification, by the numbers of their registrations. They are forgotten with its trace.
#[derive(Clone, Debug)]
pub struct PushSteps {
    pub id: NotificationId,
}

/// Makes a registration of an account, or makes anew the one of the same `node`: then its failures are forgotten. An account has `per_account_max` of
/// them. Of `rooms`, by their kinds and names in `domain`, every message wakes it while the account is listed there; a room has
/// `per_room_max` of such registrations.
#[derive(Clone, Debug)]
pub struct EnablePush {
    pub domain: DomainId,
    pub local: Box<str>,
    pub node: Box<str>,
    pub channel: PushChannel,
    pub shown: PushShown,
    pub wakes: PushWakes,
    pub rooms: Vec<(RoomKind, Box<str>)>,
    pub now: UnixMs,
    pub per_account_max: u32,
    pub per_room_max: u16,
}

impl Loads for EnablePush {
    fn load(&self) -> Load<'_> {
        let rooms: usize = self.rooms.iter().map(|(_, name)| name.len() + 256).sum();
        let bytes = self.node.len() + self.channel.bytes() + rooms + 256;
        Load { bytes, account: Some((self.domain, &self.local)) }
    }
}

/// What became of [`EnablePush`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnablePushAnswer {
    /// It is there.
    Enabled(Box<PushRegistration>),
    /// The account has as many as it may have.
    TooMany,
    /// There is no such account.
    NoAccount,
    /// The account is not listed by the room at this place of `rooms`, or there is no such room.
    NotInRoom(usize),
    /// As many registrations as may want every message of the room at this place.
    RoomFull(usize),
}

/// Ends the registrations of an account, all of them or the one of this `node`, with their pushes.
#[derive(Clone, Debug)]
pub struct DisablePush {
    pub domain: DomainId,
    pub local: Box<str>,
    pub node: Option<Box<str>>,
}

/// Claims pushes that are due, which are given to nobody else until `until`: those that were due first, at most as many as `page` has room for. Those that
/// `owner` has claimed before are given again, unless they are among `held`, in ascending order. A push whose message or notification does not wait any more ends
/// here, and is not given. A store that has one owner at a time may end all claims when it is opened.
#[derive(Clone, Debug)]
pub struct ClaimPushes {
    pub owner: u64,
    pub now: UnixMs,
    pub until: UnixMs,
    pub held: Vec<PushId>,
    pub page: Page,
}

/// Notes what came of pushes that `owner` has claimed, and the step of a trace that each was; of others nothing changes. One that was taken, or is over, ends,
/// unless it has another version by now: then it is due at `now`. An app that is gone ends the registration, unless that was made anew meanwhile: then
/// the push is due at `now`.
#[derive(Clone, Debug)]
pub struct CommitPushes {
    pub owner: u64,
    pub now: UnixMs,
    pub pushes: Vec<PushCommit>,
}

/// What came of one push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushCommit {
    pub id: PushId,
    /// As it was claimed.
    pub version: u64,
    pub registration: RegistrationId,
    /// When the registration was made, as it was claimed.
    pub registered: UnixMs,
    pub domain: DomainId,
    /// The local part of the account.
    pub local: Box<str>,
    pub outcome: PushOutcome,
    /// What the trace of the notification that was pushed gets, if it was one and a request was made: `requests` more of them, and all else anew.
    pub step: Option<Box<(NotificationId, PushStep)>>,
}
