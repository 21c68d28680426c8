//! A hook on the way in that has to ask before it decides: the stanza waits with its session, and the session's input waits
//! behind it, so that order is kept and nothing else has to be remembered. It goes on where it stood with the answer; without one in
//! time the client is told to try again. What the sessions of one account wait for is asked for a few at a time ([`account_reads`](super::account_reads)), and a
//! session that was given much goes on when the socket has taken it.

use super::{BoundSession, Cx, Sessions, account_reads, backlog};
use crate::model::{AccountId, Mono, NodeId, SessionId};
use crate::ports::{Derivation, Derived, Fault, Question};
use crate::shard::{TURN_BYTES_MAX, Track, Wake};
use carillon_wire::stanza::{Condition, Stanza, StanzaError};

/// How long an answer is waited for, in milliseconds.
pub const ANSWER_WAIT_MS: u64 = 30_000;

/// What a hook waits for before it decides, and how it decides then.
///
/// When the session ends first, nothing is decided: so what is asked for by [`Wait::ask`] changes nothing. A hook that writes, and whose
/// client is to write nothing more before that is done, asks by [`Wait::write`]; others answer for the stanza and ask by [`Cx::ask`].
pub struct Wait<T: Decision>(Box<Begin<T>>);

/// Asks for the answer that decides for the stanza at a place.
type Begin<T> = dyn FnOnce(Place<T>, &mut Cx<'_>) + Send;

/// Where a stanza that waits goes on.
pub struct Place<T: Decision> {
    account: AccountId,
    session: SessionId,
    number: u64,
    next: T::Next,
}

/// What a hook decides that may wait.
pub trait Decision: Sized + 'static {
    /// What follows it.
    type Next: Copy + Send + 'static;

    /// The stanza was dealt with.
    const DONE: Self;

    /// Does what was decided.
    fn apply(self, session: &mut BoundSession, stanza: Stanza, next: Self::Next, cx: &mut Cx<'_>);
}

/// A stanza that waits for an answer.
#[derive(Debug)]
pub(super) struct HeldStanza {
    pub(super) stanza: Stanza,
    /// Its number, if it was counted when the connection was lost ([`ParkedHook`](super::hook::ParkedHook)).
    pub(super) settles: Option<u32>,
    /// Tells the answer that it waits for from one that comes too late for another.
    number: u64,
    until: Mono,
}

impl<T: Decision> std::fmt::Debug for Wait<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Wait")
    }
}

impl<T: Decision> Wait<T> {
    /// For the store's answer to this question.
    pub fn ask<Q: Question>(
        question: Q,
        then: impl FnOnce(
            &mut BoundSession,
            &mut Stanza,
            Result<Q::Answer, Fault>,
            &mut Cx<'_>,
        ) -> Result<T, StanzaError>
        + Send
        + 'static,
    ) -> Wait<T> {
        Wait(Box::new(move |place, cx| {
            cx.ask(question, move |answer, sessions, cx| {
                if let Some(session) = sessions.bound(place.session) {
                    session.decide(&place, |session, stanza, cx| then(session, stanza, answer, cx), cx);
                }
                account_reads::end(place.account, sessions, cx);
            });
        }))
    }

    /// For the store to have written something. What follows from that is done whether the session is still there or not, and so is given
    /// no session; then it decides for the stanza.
    pub fn write<Q: Question>(
        question: Q,
        then: impl FnOnce(Result<Q::Answer, Fault>, &mut Cx<'_>) -> Result<T, StanzaError> + Send + 'static,
    ) -> Wait<T> {
        Wait(Box::new(move |place, cx| {
            cx.ask(question, move |answer, sessions: &mut Sessions, cx| {
                let decision = then(answer, cx);
                if let Some(session) = sessions.bound(place.session) {
                    session.decide(&place, |_, _, _| decision, cx);
                }
                account_reads::end(place.account, sessions, cx);
            });
        }))
    }

    /// For keys of a password.
    pub fn derive(
        derivation: Derivation,
        then: impl FnOnce(&mut BoundSession, &mut Stanza, Derived, &mut Cx<'_>) -> Result<T, StanzaError>
        + Send
        + 'static,
    ) -> Wait<T> {
        Wait(Box::new(move |place, cx| {
            cx.derive(derivation, move |derived, sessions, cx| {
                if let Some(session) = sessions.bound(place.session) {
                    session.decide(&place, |session, stanza, cx| then(session, stanza, derived, cx), cx);
                }
                account_reads::end(place.account, sessions, cx);
            });
        }))
    }

    /// For the answer to a request that is made elsewhere: at the home of an account or of a topic, which is on `node`. `send` sends it there with this id, by
    /// which the answer is known. A request that changes something is the same when it is repeated, because a client repeats it whose
    /// connection was lost before the answer.
    pub fn reply(node: NodeId, send: impl FnOnce(Box<str>, &mut Cx<'_>) + Send + 'static) -> Wait<T> {
        Wait(Box::new(move |place, cx| {
            let account = place.account;
            let answered = move |answer: Option<Stanza>, sessions: &mut Sessions, cx: &mut Cx<'_>| {
                let Some(session) = sessions.bound(place.session) else { return };
                let give = |session: &mut BoundSession, request: &mut Stanza, cx: &mut Cx<'_>| {
                    let mut answer = answer.ok_or_else(account_reads::node_gone)?;
                    answer.id = request.id.clone();
                    session.deliver(answer, Track::Nothing, cx);
                    Ok(T::DONE)
                };
                session.decide(&place, give, cx);
            };
            let id = account_reads::await_reply(account, node, answered, cx);
            send(id, cx);
        }))
    }
}

impl BoundSession {
    /// Has a stanza, and the input behind it, wait for an answer.
    pub(super) fn wait<T: Decision>(
        &mut self,
        stanza: Stanza,
        wait: Wait<T>,
        next: T::Next,
        cx: &mut Cx<'_>,
    ) {
        let (session, number) = (self.id, cx.number());
        self.waiting = Some(Box::new(HeldStanza {
            stanza,
            settles: None,
            number,
            until: cx.now.mono.plus(ANSWER_WAIT_MS),
        }));
        let place = Place { account: self.account, session, number, next };
        let begin = move |sessions: Option<&mut Sessions>, cx: &mut Cx<'_>| {
            let is_wanted = sessions.is_none_or(|sessions| {
                sessions.bound(session).is_some_and(|session| session.waits_for(number))
            });
            if is_wanted {
                (wait.0)(place, cx);
            }
            is_wanted
        };
        account_reads::begin(self.account, session, begin, cx);
        cx.wake_in(session, ANSWER_WAIT_MS, Wake::Waiting);
        self.pause(cx);
    }

    fn waits_for(&self, number: u64) -> bool {
        self.waiting.as_ref().is_some_and(|waiting| waiting.number == number)
    }

    /// The answer came that a stanza waits for; it is of no use when that was given up.
    fn decide<T: Decision>(
        &mut self,
        place: &Place<T>,
        then: impl FnOnce(&mut BoundSession, &mut Stanza, &mut Cx<'_>) -> Result<T, StanzaError>,
        cx: &mut Cx<'_>,
    ) {
        let Some(waiting) = self.waiting.take_if(|waiting| waiting.number == place.number) else { return };
        let mut stanza = waiting.stanza;
        cx.agenda.counted = waiting.settles;
        match then(self, &mut stanza, cx) {
            Ok(decision) => decision.apply(self, stanza, place.next, cx),
            Err(error) => self.refuse(&stanza, &error, cx),
        }
        self.decided(waiting.settles, cx);
    }

    /// An answer did not come in time.
    pub(super) fn give_up_waiting(&mut self, cx: &mut Cx<'_>) {
        let Some(waiting) = self.waiting.take_if(|waiting| waiting.until <= cx.now.mono) else { return };
        let error = StanzaError::new(Condition::ResourceConstraint)
            .with_text("what is needed to decide on this did not come in time; try again later");
        cx.agenda.counted = waiting.settles;
        self.refuse(&waiting.stanza, &error, cx);
        self.decided(waiting.settles, cx);
    }

    /// A stanza that waited is dealt with, unless it waits once more. One that was counted is settled with that, unless it is only under
    /// way now.
    fn decided(&mut self, settles: Option<u32>, cx: &mut Cx<'_>) {
        let unsettled = cx.agenda.counted.take();
        if let Some(waiting) = &mut self.waiting {
            waiting.settles = settles;
            return;
        }
        match (settles, unsettled) {
            (Some(_), None) => {}
            (Some(_), Some(number)) => cx.pipeline.settled.iter().for_each(|hook| hook(self, number, cx)),
            (None, _) => self.received(cx),
        }
        // What is asked next would be written behind it.
        if self.io.is_some() && cx.out.bytes.len() >= TURN_BYTES_MAX {
            self.link.hold_input();
            backlog::await_flush(self, cx);
        }
        self.read_on(cx);
    }
}
