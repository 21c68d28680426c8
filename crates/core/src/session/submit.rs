//! Stanzas from a client: through the hooks, then to the service, the server, the account or the router.

use super::wait::{Decision, Wait};
use super::{BoundSession, Cx, home};
use crate::model::DomainId;
use crate::session::hook::{At, Flow, IqAnswer, IqHandle, Request, Service, Taken};
use crate::shard::Track;
use carillon_wire::jid::Jid;
use carillon_wire::stanza::{Condition, IqType, Kind, PresenceType, Stanza, StanzaError};
use carillon_wire::xml::Element;

/// The next step for a stanza from a client.
#[derive(Clone, Copy, Debug)]
pub enum Next {
    /// The feature whose address it is for.
    Service(&'static Service),
    /// What any host answers, because that feature passed it.
    Host,
    /// The hook with this number, or the addressee when there are no more hooks.
    Hook(usize),
}

impl Decision for Flow {
    type Next = Next;

    const DONE: Flow = Flow::Taken(Taken::Request);

    fn apply(self, session: &mut BoundSession, stanza: Stanza, next: Next, cx: &mut Cx<'_>) {
        match self {
            Flow::Pass => session.go_on(stanza, next, cx),
            Flow::Taken(how) => session.taken(&stanza, how, cx),
            Flow::Wait(wait) => session.wait(stanza, wait, next, cx),
        }
    }
}

impl Decision for IqAnswer {
    type Next = ();

    const DONE: IqAnswer = IqAnswer::Later;

    fn apply(self, session: &mut BoundSession, request: Stanza, (): (), cx: &mut Cx<'_>) {
        let payload = match self {
            IqAnswer::Empty => None,
            IqAnswer::Payload(payload) => Some(payload),
            IqAnswer::Ready(payload) => {
                let mut reply = request.result_reply();
                reply.payload = payload;
                return session.send(&reply, &Track::Nothing, cx);
            }
            IqAnswer::Later => return,
            IqAnswer::Wait(wait) => return session.wait(request, wait, (), cx),
        };
        session.answer(&request, payload.as_ref(), cx);
    }
}

impl BoundSession {
    /// A stanza came.
    pub(super) fn submit(&mut self, mut stanza: Stanza, cx: &mut Cx<'_>) {
        if self.is_out_of_reach(&stanza, cx) {
            return self.refuse(&stanza, &StanzaError::new(Condition::RemoteServerNotFound), cx);
        }
        if let Some(screen) = cx.pipeline.screen
            && matches!(stanza.kind, Kind::Message(_))
        {
            let is_for_service = self.service(&stanza, cx).is_some();
            match screen(&self.bare, &mut stanza, is_for_service, cx) {
                Ok(None) => {}
                Ok(Some(how)) => return self.taken(&stanza, how, cx),
                Err(error) => return self.refuse(&stanza, &error, cx),
            }
        }
        match self.service(&stanza, cx) {
            None => {
                if let Some(stanza) = self.passes(stanza, cx) {
                    self.go_on(stanza, Next::Hook(0), cx);
                }
            }
            Some((service, domain)) if domain == self.domain || service.is_for_others => {
                self.go_on(stanza, Next::Service(service), cx);
            }
            Some(_) => match stanza.kind {
                Kind::Presence(_) | Kind::Iq(IqType::Result | IqType::Error) => {}
                _ => {
                    let error = StanzaError::new(Condition::Forbidden)
                        .with_text("the service is for accounts of its own domain");
                    self.refuse(&stanza, &error, cx);
                }
            },
        }
    }

    /// Whether a stanza is for a domain, or a service of one, with which accounts of this one exchange none. To end a subscription is always possible.
    fn is_out_of_reach(&self, stanza: &Stanza, cx: &Cx<'_>) -> bool {
        let (own, domains) = (self.bare.domain(), &cx.shard.domains);
        let Some(host) = stanza.to.as_ref().map(Jid::domain).filter(|host| *host != own) else {
            return false;
        };
        let of_service = || domains.named(host.split_once('.')?.1);
        let Some(domain) = domains.named(host).or_else(of_service) else { return false };
        domains.reachable(own, &domain.name).is_none()
            && !matches!(stanza.kind, Kind::Presence(PresenceType::Unsubscribe | PresenceType::Unsubscribed))
    }

    /// The feature's address that a stanza is for, and its domain.
    fn service(&self, stanza: &Stanza, cx: &Cx<'_>) -> Option<(&'static Service, DomainId)> {
        let host = stanza.to.as_ref()?.domain();
        // A domain that happens to be called so comes first.
        if host == self.bare.domain() || cx.shard.domains.named(host).is_some() {
            return None;
        }
        let (label, domain) = host.split_once('.')?;
        Some((cx.pipeline.service(label)?, cx.shard.domains.named(domain)?.id))
    }

    /// Goes on with a stanza at this step.
    pub(super) fn go_on(&mut self, mut stanza: Stanza, mut next: Next, cx: &mut Cx<'_>) {
        loop {
            let (hook, then) = match next {
                Next::Service(service) => (service.submit, Next::Host),
                Next::Hook(i) => match cx.pipeline.submit(&stanza.kind).get(i) {
                    Some(hook) => (*hook, Next::Hook(i + 1)),
                    None => break,
                },
                Next::Host => break,
            };
            next = then;
            match hook(self, &mut stanza, cx) {
                Ok(Flow::Pass) => {}
                Ok(Flow::Taken(how)) => return self.taken(&stanza, how, cx),
                Ok(Flow::Wait(wait)) => return self.wait(stanza, wait, next, cx),
                Err(error) => return self.refuse(&stanza, &error, cx),
            }
        }
        let at = match next {
            Next::Host | Next::Service(_) => Some(At::Service),
            Next::Hook(_) => self.own_address(stanza.to.as_ref()),
        };
        self.dispatch(stanza, at, cx);
    }

    /// A feature has dealt with a stanza.
    fn taken(&self, stanza: &Stanza, how: Taken, cx: &mut Cx<'_>) {
        cx.shard.counters.stanzas_taken.count(how.name());
        if self.is_tapped {
            self.tap_route(stanza, "taken", how.name(), cx);
        }
    }

    /// Which of the server's own addresses a stanza is for.
    fn own_address(&self, to: Option<&Jid>) -> Option<At> {
        match to {
            None => Some(At::Account),
            Some(to) if to.is_bare() && to.as_str() == self.bare.as_str() => Some(At::Account),
            Some(to) if to.as_str() == self.bare.domain() => Some(At::Server),
            Some(_) => None,
        }
    }

    /// Gives a stanza to its addressee.
    fn dispatch(&mut self, mut stanza: Stanza, at: Option<At>, cx: &mut Cx<'_>) {
        match (at, stanza.kind) {
            (Some(at), Kind::Iq(IqType::Get | IqType::Set)) => self.request(stanza, at, cx),
            // To a ping, say: that it came was all that mattered.
            (Some(_), Kind::Iq(_)) => cx.pipeline.response.iter().for_each(|hook| hook(self, &stanza, cx)),
            (Some(At::Server | At::Service), Kind::Presence(_)) => {}
            (Some(At::Server | At::Service), Kind::Message(_)) => {
                self.refuse(&stanza, &StanzaError::new(Condition::ServiceUnavailable), cx);
            }
            (Some(At::Account | At::Both), _) => {
                stanza.to.get_or_insert_with(|| self.bare.to_jid());
                cx.route_from(self, stanza);
            }
            (None, _) if stanza.to.as_ref().and_then(|to| cx.domain_of(to)).is_none() => {
                self.refuse(&stanza, &StanzaError::new(Condition::RemoteServerNotFound), cx);
            }
            // The server answers for the account.
            (None, Kind::Iq(IqType::Get)) if stanza.to.as_ref().is_some_and(Jid::is_bare) => {
                let mut request = stanza.clone();
                // Which node has the home is known only where the account is claimed: without an answer in time, it is gone.
                let wait = Wait::<IqAnswer>::reply(cx.shard.place.node, move |id, cx| {
                    request.id = Some(id);
                    cx.route(request);
                });
                self.wait(stanza, wait, (), cx);
            }
            (None, _) => cx.route_from(self, stanza),
        }
    }

    /// Has an IQ request to the server or to the client's own account answered.
    fn request(&mut self, stanza: Stanza, at: At, cx: &mut Cx<'_>) {
        let answer = {
            let Kind::Iq(kind) = stanza.kind else { return };
            let child = stanza.payload.children().next().ok_or(StanzaError::new(Condition::BadRequest));
            child.and_then(|child| {
                let handler = match at {
                    At::Account if cx.pipeline.answers_instead(kind, &child) => {
                        Some(home::ask_in_order as IqHandle)
                    }
                    At::Account if cx.pipeline.is_for_home(kind, &child) => Some(home::ask as IqHandle),
                    _ => cx.pipeline.iq_handler(kind, child.name(), child.ns(), at),
                };
                // RFC 6120 §8.3.3.19
                let handle = handler.ok_or(StanzaError::new(Condition::ServiceUnavailable))?;
                handle(self, &Request { stanza: &stanza, payload: &child.element(), at }, cx)
            })
        };
        match answer {
            Ok(answer) => answer.apply(self, stanza, (), cx),
            Err(error) => self.refuse(&stanza, &error, cx),
        }
    }

    /// Answers an IQ request of the client's with a result.
    pub(super) fn answer(&mut self, request: &Stanza, payload: Option<&Element>, cx: &mut Cx<'_>) {
        let mut reply = request.result_reply();
        if let Some(payload) = payload {
            reply.payload.push_element(payload);
        }
        self.send(&reply, &Track::Nothing, cx);
    }

    /// Answers a stanza of the client's with an error.
    pub fn refuse(&mut self, stanza: &Stanza, error: &StanzaError, cx: &mut Cx<'_>) {
        if self.is_tapped {
            self.tap_route(stanza, "refused", error.condition.as_str(), cx);
        }
        if let Some(reply) = stanza.error_reply(error) {
            self.send(&reply, &Track::Nothing, cx);
        }
    }
}
