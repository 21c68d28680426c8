//! Operations: writes that are done once, however often they are asked with the same id.
//!
//! What is remembered of one is what its answer cannot be made again from: a number that was given, whether it was new.

use crate::rows::webhook;
use carillon_core::form::{Clock, decode, encode};
use carillon_core::model::*;
use carillon_core::ports::store::Question;
use carillon_core::ports::store::accounts::{
    CreateAccount, CreateAccountAnswer, DeleteAccount, RevokeTokens,
};
use carillon_core::ports::store::acts::NoteAct;
use carillon_core::ports::store::archive::{KeepMessage, KeepMessageAnswer};
use carillon_core::ports::store::blocking::{
    ChangeBlockList, ChangeBlockListAnswer, ChangePrivacyLists, ChangePrivacyListsAnswer,
};
use carillon_core::ports::store::domains::{
    ChangePolicy, DeleteDomain, Overtaken, PutDomain, PutDomainAnswer,
};
use carillon_core::ports::store::idempotency::{Reservation, Reserve};
use carillon_core::ports::store::inbox::{Emptied, EmptyBin};
use carillon_core::ports::store::invitations::{
    AcceptInvitation, CreateInvitation, CreateInvitationAnswer, RegisterInvited, RegisterInvitedAnswer,
    RevokeInvitation,
};
use carillon_core::ports::store::items::{Publish, Retract};
use carillon_core::ports::store::keys::{CreateKey, CreateKeyAnswer, DeleteKey};
use carillon_core::ports::store::links::CountClicks;
use carillon_core::ports::store::nodes::{EditNode, EditNodes, EditNodesAnswer};
use carillon_core::ports::store::notifications::{
    CancelNotification, CancelNotificationAnswer, ClaimDue, Sweep,
};
use carillon_core::ports::store::offline::{StoreOffline, StoreOfflineAnswer};
use carillon_core::ports::store::rooms::{CreateRoom, CreateRoomAnswer, DestroyRoom, KeepRoomMessage};
use carillon_core::ports::store::roster::{
    ChangeSubscription, ChangeSubscriptionAnswer, PutContact, PutContactAnswer, RemoveContact,
    RemoveContactAnswer,
};
use carillon_core::ports::store::subscriptions::{Subscribe, SubscribeAnswer, Unsubscribe};
use carillon_core::ports::store::topics::{CreateTopic, CreateTopicAnswer, DeleteTopic};
use carillon_core::ports::store::webhooks::{CreateWebhook, CreateWebhookAnswer, DeleteWebhook};
use carillon_core::ports::{Missing, Part};
use std::sync::Arc;

/// What a store tells of things as they are now, where an answer of then says so.
pub(crate) trait Recalls {
    /// Why it cannot.
    type Error;

    /// A topic's last item, where there is one.
    fn last_item(&mut self, topic: TopicId) -> Result<Option<Arc<Item>>, Self::Error>;
    /// The domain of this name.
    fn domain(&mut self, name: &str) -> Result<Option<Domain>, Self::Error>;
    /// Whether a notification is due.
    fn is_due(&mut self, now: UnixMs) -> Result<bool, Self::Error>;
    /// Those of a claim that are still there, in their order.
    fn claimed(&mut self, ids: &[NotificationId]) -> Result<Vec<Notification>, Self::Error>;
    /// The traces of those that have ended and are not forgotten, in their order.
    fn ended(&mut self, ids: &[NotificationId]) -> Result<Vec<Trace>, Self::Error>;
    /// Whether a sweep leaves anything to the next one.
    fn has_more(&mut self, sweep: &Sweep) -> Result<bool, Self::Error>;
}

/// A write that is remembered.
pub(crate) trait Remembered: Question {
    /// Its number in the database, which never changes its meaning.
    const CODE: u8;

    /// What is remembered of it; none when it changed nothing, and may be done when it is asked again.
    fn outcome(answer: &Self::Answer) -> Option<Vec<u8>>;

    /// The answer of then; none when the outcome is not one of these.
    fn again<R: Recalls>(&self, outcome: &[u8], store: &mut R) -> Result<Option<Self::Answer>, R::Error>;
}

/// What is kept of a write that has been done: its code and what is remembered.
pub(crate) fn kept<Q: Remembered>(answer: &Q::Answer) -> Option<Vec<u8>> {
    let mut outcome = Q::outcome(answer)?;
    outcome.insert(0, Q::CODE);
    Some(outcome)
}

/// The answer of then, from what was kept; none when that is another operation's.
pub(crate) fn again<Q: Remembered, R: Recalls>(
    question: &Q,
    kept: &[u8],
    store: &mut R,
) -> Result<Option<Q::Answer>, R::Error> {
    match kept.split_first() {
        Some((code, outcome)) if *code == Q::CODE => question.again(outcome, store),
        _ => Ok(None),
    }
}

/// Writes whose only answer that is remembered says that they were done.
macro_rules! done {
    ($($question:ty = $code:literal, $done:pat => $answer:expr;)*) => {
        $(impl Remembered for $question {
            const CODE: u8 = $code;

            fn outcome(answer: &Self::Answer) -> Option<Vec<u8>> {
                matches!(answer, $done).then(Vec::new)
            }

            fn again<R: Recalls>(&self, _: &[u8], _: &mut R) -> Result<Option<Self::Answer>, R::Error> {
                Ok(Some($answer))
            }
        })*
    };
}

done! {
    Unsubscribe = 4, Ok(()) => Ok::<(), Missing>(());
    Retract = 5, Ok(()) => Ok::<(), Missing>(());
    DeleteKey = 6, Ok(()) => Ok::<(), Missing>(());
    DeleteWebhook = 18, Ok(()) => Ok::<(), Missing>(());
    CountClicks = 35, () => ();
    NoteAct = 64, () => ();
    RevokeInvitation = 60, Ok(()) => Ok::<(), Missing>(());
}

/// Removals in parts whose answer is whether there is more.
macro_rules! parts {
    ($($question:ty = $code:literal;)*) => {
        $(impl Remembered for $question {
            const CODE: u8 = $code;

            fn outcome(answer: &Self::Answer) -> Option<Vec<u8>> {
                // Nothing is what was noted before there were parts.
                answer.as_ref().ok().map(|more| if *more { vec![1] } else { Vec::new() })
            }

            fn again<R: Recalls>(&self, outcome: &[u8], _: &mut R) -> Result<Option<Self::Answer>, R::Error> {
                Ok(Some(Ok(outcome == [1])))
            }
        })*
    };
}

parts! {
    DeleteTopic = 3;
    DestroyRoom = 36;
}

/// Whether more follows, and what changed in the rosters of others. Its number was 2 before there were parts.
impl Remembered for DeleteAccount {
    const CODE: u8 = 73;

    fn outcome(answer: &Self::Answer) -> Option<Vec<u8>> {
        answer.as_ref().ok().map(part)
    }

    fn again<R: Recalls>(&self, outcome: &[u8], _: &mut R) -> Result<Option<Self::Answer>, R::Error> {
        Ok(part_of(outcome).map(Ok))
    }
}

/// What changed in the rosters of both.
impl Remembered for RegisterInvited {
    const CODE: u8 = 62;

    fn outcome(answer: &RegisterInvitedAnswer) -> Option<Vec<u8>> {
        if let RegisterInvitedAnswer::Registered(changes) = answer { Some(encode(changes, 0)) } else { None }
    }

    fn again<R: Recalls>(&self, outcome: &[u8], _: &mut R) -> Result<Option<Self::Answer>, R::Error> {
        Ok(changes_of(outcome).map(RegisterInvitedAnswer::Registered))
    }
}

impl Remembered for AcceptInvitation {
    const CODE: u8 = 63;

    fn outcome(answer: &Self::Answer) -> Option<Vec<u8>> {
        answer.as_ref().ok().filter(|changes| !changes.is_empty()).map(|changes| encode(changes, 0))
    }

    fn again<R: Recalls>(&self, outcome: &[u8], _: &mut R) -> Result<Option<Self::Answer>, R::Error> {
        Ok(changes_of(outcome).map(Ok))
    }
}

/// The same.
impl Remembered for DeleteDomain {
    const CODE: u8 = 1;

    fn outcome(answer: &Self::Answer) -> Option<Vec<u8>> {
        answer.as_ref().ok().map(part)
    }

    fn again<R: Recalls>(&self, outcome: &[u8], _: &mut R) -> Result<Option<Self::Answer>, R::Error> {
        Ok(part_of(outcome).map(Ok))
    }
}

fn part(part: &Part<RosterChange>) -> Vec<u8> {
    let mut outcome = vec![u8::from(part.more)];
    if !part.entries.is_empty() {
        outcome.extend(encode(&part.entries, 0));
    }
    outcome
}

fn part_of(outcome: &[u8]) -> Option<Part<RosterChange>> {
    let (more, changes) = outcome.split_first().map_or((false, outcome), |(more, rest)| (*more == 1, rest));
    changes_of(changes).map(|entries| Part { entries, more })
}

fn changes_of(outcome: &[u8]) -> Option<Vec<RosterChange>> {
    if outcome.is_empty() { Some(Vec::new()) } else { decode(outcome, Clock::default()).ok() }
}

/// Writes of whose answer a number is remembered.
macro_rules! numbered {
    ($($question:ty = $code:literal, $done:pat => $number:expr, |$asked:ident, $known:ident, $write:ident| $answer:expr;)*) => {
        $(impl Remembered for $question {
            const CODE: u8 = $code;

            fn outcome(answer: &Self::Answer) -> Option<Vec<u8>> {
                let number: u64 = match answer { $done => $number, _ => return None };
                Some(number.to_be_bytes().to_vec())
            }

            fn again<R: Recalls>(&self, outcome: &[u8], $write: &mut R) -> Result<Option<Self::Answer>, R::Error> {
                let Ok(number) = outcome.try_into() else { return Ok(None) };
                let ($asked, $known) = (self, u64::from_be_bytes(number));
                $answer
            }
        })*
    };
}

numbered! {
    CreateAccount = 9, CreateAccountAnswer::Created(id) => id.0, |_asked, known, _write| {
        Ok(Some(CreateAccountAnswer::Created(AccountId(known))))
    };
    CreateTopic = 10, CreateTopicAnswer::Created(record) => u64::from(record.id.0), |asked, known, _write| {
        Ok(Some(CreateTopicAnswer::Created(Box::new(created(asked, TopicId(known as u32))))))
    };
    CreateKey = 11, CreateKeyAnswer::Created(key) => u64::from(key.id.0), |asked, known, _write| {
        Ok(Some(CreateKeyAnswer::Created(ApiKey {
            id: KeyId(known as u32),
            name: asked.name.clone(),
            domain: asked.domain,
            scopes: asked.scopes,
            expires: asked.expires,
            created: asked.now,
            networks: asked.networks.clone(),
            certificates: asked.certificates.clone(),
            used: None,
        })))
    };
    Subscribe = 13, SubscribeAnswer::Subscribed { new: true, .. } => 1, |asked, _known, write| {
        // Of a topic that is gone since there is no last item.
        let last = write.last_item(asked.topic)?;
        Ok(Some(SubscribeAnswer::Subscribed { new: true, last }))
    };
    StoreOffline = 7, StoreOfflineAnswer::Stored(seq) => *seq, |_asked, known, _write| {
        Ok(Some(StoreOfflineAnswer::Stored(known)))
    };
    KeepMessage = 25, KeepMessageAnswer::Kept { id, sender, recipient } => id.0 << 2 | u64::from(*sender) << 1 | u64::from(*recipient), |_asked, known, _write| {
        let (sender, recipient) = (known & 2 != 0, known & 1 != 0);
        Ok(Some(KeepMessageAnswer::Kept { id: ArchiveId(known >> 2), sender, recipient }))
    };
    CreateRoom = 37, CreateRoomAnswer::Created(record) => u64::from(record.id.0), |asked, known, _write| {
        Ok(Some(CreateRoomAnswer::Created(Box::new(created_room(asked, RoomId(known as u32))))))
    };
    CreateInvitation = 61, CreateInvitationAnswer::Created(made) => made.id.0, |asked, known, _write| {
        Ok(Some(CreateInvitationAnswer::Created(Box::new(asked.created(InvitationId(known))))))
    };
    KeepRoomMessage = 38, Ok(id) => id.0, |_asked, known, _write| Ok(Some(Ok(ArchiveId(known))));
    EmptyBin = 26, Ok(emptied) => u64::from(emptied.conversations) | u64::from(emptied.more) << 32, |_asked, known, _write| {
        Ok(Some(Ok(Emptied { conversations: known as u32, more: known >> 32 == 1 })))
    };
    Reserve = 14, Reservation::Go { since } => since.0, |_asked, known, _write| {
        Ok(Some(Reservation::Go { since: UnixMs(known) }))
    };
}

impl Remembered for PutDomain {
    const CODE: u8 = 8;

    fn outcome(answer: &PutDomainAnswer) -> Option<Vec<u8>> {
        let mut outcome = answer.domain.id.0.to_be_bytes().to_vec();
        outcome.push(answer.created.into());
        Some(outcome)
    }

    fn again<R: Recalls>(&self, outcome: &[u8], write: &mut R) -> Result<Option<PutDomainAnswer>, R::Error> {
        let &[a, b, c, d, created] = outcome else { return Ok(None) };
        let id = DomainId(u32::from_be_bytes([a, b, c, d]));
        let known = write.domain(&self.name)?.filter(|known| known.id == id);
        let domain = known.unwrap_or_else(|| Domain::new(id, &*self.name, self.policy));
        Ok(Some(PutDomainAnswer { domain, created: created == 1 }))
    }
}

impl Remembered for ChangePolicy {
    const CODE: u8 = 33;

    fn outcome(answer: &Result<Domain, Overtaken>) -> Option<Vec<u8>> {
        answer.as_ref().ok().map(|domain| domain.id.0.to_be_bytes().to_vec())
    }

    fn again<R: Recalls>(
        &self,
        outcome: &[u8],
        _: &mut R,
    ) -> Result<Option<Result<Domain, Overtaken>>, R::Error> {
        let Ok(id) = outcome.try_into() else { return Ok(None) };
        let id = DomainId(u32::from_be_bytes(id));
        Ok(Some(Ok(Domain { granted: self.granted, ..Domain::new(id, &*self.name, self.policy) })))
    }
}

/// The webhook as it was created: its number and its first cursor are remembered.
impl Remembered for CreateWebhook {
    const CODE: u8 = 19;

    fn outcome(answer: &CreateWebhookAnswer) -> Option<Vec<u8>> {
        let CreateWebhookAnswer::Created(webhook) = answer else { return None };
        Some([u64::from(webhook.id.0), webhook.progress.cursor].map(u64::to_be_bytes).concat())
    }

    fn again<R: Recalls>(&self, outcome: &[u8], _: &mut R) -> Result<Option<CreateWebhookAnswer>, R::Error> {
        let ([id, cursor], []) = outcome.as_chunks() else { return Ok(None) };
        let (id, cursor) = (WebhookId(u64::from_be_bytes(*id) as u32), u64::from_be_bytes(*cursor));
        Ok(Some(CreateWebhookAnswer::Created(Box::new(webhook::created(self, id, cursor)))))
    }
}

impl Remembered for RevokeTokens {
    const CODE: u8 = 15;

    fn outcome(answer: &Option<Revocations>) -> Option<Vec<u8>> {
        answer.as_ref().map(Revocations::to_bytes)
    }

    fn again<R: Recalls>(&self, outcome: &[u8], _: &mut R) -> Result<Option<Option<Revocations>>, R::Error> {
        Ok(Revocations::from_bytes(outcome).map(Some))
    }
}

/// The item with the revision and the time of then.
impl Remembered for Publish {
    const CODE: u8 = 12;

    fn outcome(answer: &Option<Arc<Item>>) -> Option<Vec<u8>> {
        let item = answer.as_ref()?;
        Some([item.revision.0.to_be_bytes(), item.published.0.to_be_bytes()].concat())
    }

    fn again<R: Recalls>(&self, outcome: &[u8], _: &mut R) -> Result<Option<Option<Arc<Item>>>, R::Error> {
        let (revision, published) = match outcome.as_chunks() {
            ([revision, published], []) => (revision, UnixMs(u64::from_be_bytes(*published))),
            // Before version 9 of the schema the time was not remembered.
            ([revision], []) => (revision, self.item.published),
            _ => return Ok(None),
        };
        let revision = Revision(u64::from_be_bytes(*revision));
        Ok(Some(Some(Arc::new(Item { revision, published, ..self.item.clone() }))))
    }
}

/// What was handed out and is not handed over yet. Whether there is more is as it is then.
impl Remembered for ClaimDue {
    const CODE: u8 = 16;

    fn outcome(answer: &Part<Notification>) -> Option<Vec<u8>> {
        outcome_of(answer.entries.iter().map(|notification| notification.id))
    }

    fn again<R: Recalls>(
        &self,
        outcome: &[u8],
        write: &mut R,
    ) -> Result<Option<Part<Notification>>, R::Error> {
        let Some(ids) = ids_of(outcome) else { return Ok(None) };
        let more = write.is_due(self.now)?;
        Ok(Some(Part { entries: write.claimed(&ids)?, more }))
    }
}

impl Remembered for Sweep {
    const CODE: u8 = 17;

    fn outcome(answer: &Part<Trace>) -> Option<Vec<u8>> {
        outcome_of(answer.entries.iter().map(|trace| trace.id))
    }

    fn again<R: Recalls>(&self, outcome: &[u8], write: &mut R) -> Result<Option<Part<Trace>>, R::Error> {
        let Some(ids) = ids_of(outcome) else { return Ok(None) };
        let entries = write.ended(&ids)?;
        Ok(Some(Part { entries, more: write.has_more(self)? }))
    }
}

/// That it was this operation that ended the notification.
impl Remembered for CancelNotification {
    const CODE: u8 = 20;

    fn outcome(answer: &CancelNotificationAnswer) -> Option<Vec<u8>> {
        matches!(answer, CancelNotificationAnswer::Cancelled(_)).then(Vec::new)
    }

    fn again<R: Recalls>(
        &self,
        _: &[u8],
        write: &mut R,
    ) -> Result<Option<CancelNotificationAnswer>, R::Error> {
        let trace = write.ended(&[self.id])?.pop().map(Box::new);
        Ok(Some(trace.map_or(CancelNotificationAnswer::Missing, CancelNotificationAnswer::Cancelled)))
    }
}

/// What changed.
impl Remembered for PutContact {
    const CODE: u8 = 21;

    fn outcome(answer: &PutContactAnswer) -> Option<Vec<u8>> {
        if let PutContactAnswer::Put(change) = answer { Some(encode(change, 0)) } else { None }
    }

    fn again<R: Recalls>(&self, outcome: &[u8], _: &mut R) -> Result<Option<PutContactAnswer>, R::Error> {
        Ok(decode(outcome, Clock::default()).ok().map(PutContactAnswer::Put))
    }
}

impl Remembered for RemoveContact {
    const CODE: u8 = 22;

    fn outcome(answer: &RemoveContactAnswer) -> Option<Vec<u8>> {
        if let RemoveContactAnswer::Removed(both) = answer { Some(encode(both, 0)) } else { None }
    }

    fn again<R: Recalls>(&self, outcome: &[u8], _: &mut R) -> Result<Option<RemoveContactAnswer>, R::Error> {
        Ok(decode(outcome, Clock::default()).ok().map(RemoveContactAnswer::Removed))
    }
}

impl Remembered for ChangeSubscription {
    const CODE: u8 = 23;

    fn outcome(answer: &ChangeSubscriptionAnswer) -> Option<Vec<u8>> {
        if let ChangeSubscriptionAnswer::Changed(both) = answer { Some(encode(both, 0)) } else { None }
    }

    fn again<R: Recalls>(
        &self,
        outcome: &[u8],
        _: &mut R,
    ) -> Result<Option<ChangeSubscriptionAnswer>, R::Error> {
        Ok(decode(outcome, Clock::default()).ok().map(ChangeSubscriptionAnswer::Changed))
    }
}

impl Remembered for ChangeBlockList {
    const CODE: u8 = 24;

    fn outcome(answer: &ChangeBlockListAnswer) -> Option<Vec<u8>> {
        if let ChangeBlockListAnswer::Changed(change) = answer { Some(encode(change, 0)) } else { None }
    }

    fn again<R: Recalls>(
        &self,
        outcome: &[u8],
        _: &mut R,
    ) -> Result<Option<ChangeBlockListAnswer>, R::Error> {
        Ok(decode(outcome, Clock::default()).ok().map(ChangeBlockListAnswer::Changed))
    }
}

impl Remembered for ChangePrivacyLists {
    const CODE: u8 = 70;

    fn outcome(answer: &ChangePrivacyListsAnswer) -> Option<Vec<u8>> {
        if let ChangePrivacyListsAnswer::Changed(lists, block_list) = answer {
            Some(encode(&(lists.clone(), block_list.clone()), 0))
        } else {
            None
        }
    }

    fn again<R: Recalls>(
        &self,
        outcome: &[u8],
        _: &mut R,
    ) -> Result<Option<ChangePrivacyListsAnswer>, R::Error> {
        let changes = decode(outcome, Clock::default()).ok();
        Ok(changes.map(|(lists, block_list)| ChangePrivacyListsAnswer::Changed(lists, block_list)))
    }
}

impl Remembered for EditNode {
    const CODE: u8 = 34;

    fn outcome(answer: &Self::Answer) -> Option<Vec<u8>> {
        answer.as_ref().ok().map(|change| encode(change, 0))
    }

    fn again<R: Recalls>(&self, outcome: &[u8], _: &mut R) -> Result<Option<Self::Answer>, R::Error> {
        Ok(decode(outcome, Clock::default()).ok().map(Ok))
    }
}

/// Where an edit was refused it is not remembered: those before it may be done again, and do the same.
impl Remembered for EditNodes {
    const CODE: u8 = 72;

    fn outcome(answer: &EditNodesAnswer) -> Option<Vec<u8>> {
        answer.refusal.is_none().then(|| encode(&answer.changes, 0))
    }

    fn again<R: Recalls>(&self, outcome: &[u8], _: &mut R) -> Result<Option<EditNodesAnswer>, R::Error> {
        let changes = decode(outcome, Clock::default()).ok();
        Ok(changes.map(|changes| EditNodesAnswer { changes, refusal: None }))
    }
}

/// Notifications by their ids; none for none.
fn outcome_of(ids: impl Iterator<Item = NotificationId>) -> Option<Vec<u8>> {
    let outcome: Vec<u8> = ids.flat_map(|id| id.0.to_be_bytes()).collect();
    (!outcome.is_empty()).then_some(outcome)
}

fn ids_of(outcome: &[u8]) -> Option<Vec<NotificationId>> {
    let (ids, rest) = outcome.as_chunks();
    rest.is_empty().then(|| ids.iter().map(|id| NotificationId(u128::from_be_bytes(*id))).collect())
}

/// The topic as it was created.
fn created(asked: &CreateTopic, id: TopicId) -> TopicRecord {
    let mut affiliations = asked.affiliations.clone();
    affiliations.retain(|(_, affiliation)| *affiliation != Affiliation::None);
    affiliations.sort_by(|(a, _), (b, _)| a.as_str().cmp(b.as_str()));
    TopicRecord {
        id,
        domain: asked.domain,
        name: asked.name.clone(),
        config: asked.config.clone(),
        affiliations,
        created: asked.now,
    }
}

/// A room as it was created.
pub(crate) fn created_room(asked: &CreateRoom, id: RoomId) -> RoomRecord {
    let CreateRoom { domain, kind, name, config, members, owned_max: _, rooms_max: _, now, facts: _ } = asked;
    let (config, mut members) = (config.clone(), members.clone());
    members.sort_by(|a, b| a.jid.as_str().cmp(b.jid.as_str()));
    RoomRecord {
        id,
        domain: *domain,
        kind: *kind,
        name: name.clone(),
        config,
        members,
        subject: None,
        created: *now,
        version: 0,
        newest: ArchiveId(0),
        photos: Box::default(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    /// An answer that is remembered is known by the code of its question.
    #[test]
    fn no_two_questions_have_one_code() {
        let source = include_str!("remembered.rs").split("mod tests").next().expect("what comes before");
        let after_equals = |line: &str| {
            let (before, after) = line.trim().split_once(" = ")?;
            let is_code = before == "const CODE: u8" || before.chars().all(char::is_alphanumeric);
            let code = after.split([',', ';']).next().filter(|_| is_code)?;
            code.parse::<u8>().ok()
        };
        let codes: Vec<u8> = source.lines().filter_map(after_equals).collect();
        assert!(codes.len() > 25, "{codes:?}");
        assert_eq!(codes.iter().collect::<BTreeSet<_>>().len(), codes.len(), "{codes:?}");
    }
}
