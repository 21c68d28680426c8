//! The client proved who it is: it is told so, and binds.

use crate::connection::Io;
use crate::model::{AccountId, DomainId, Identity, Login, Moment, Mono, Revocations};
use crate::sasl::fast::{self, Stamp, Tokens};
use crate::sasl::{self, Failure, Inline, Protection, Wrap};
use crate::session::bind::choose;
use crate::session::{Binding, Closing, Cx, Loading, Restarting, Session};
use crate::shard::{Known, Wake};
use carillon_wire::jid::BareJid;
use carillon_wire::ns;
use carillon_wire::stanza::StanzaError;
use carillon_wire::xml::Element;

/// Proof that the client is the account: only SASL makes one.
#[derive(Debug)]
pub struct Authenticated {
    jid: BareJid,
    domain: DomainId,
    account: AccountId,
    revocations: Revocations,
    /// When what proves it was read: what was altered later is not known to it.
    since: Moment,
    /// Of a login that has to do with tokens.
    stamp: Option<Stamp>,
    /// What belongs to the account, where the node remembers it: then no store is asked.
    known: Option<Box<Login>>,
}

/// What a client is told when what it asked for is done.
#[derive(Debug)]
pub enum Greeting {
    /// The SASL success, with the mechanism's last words.
    Success {
        /// How the exchange is wrapped.
        wrap: Wrap,
        /// The mechanism's last words.
        data: Option<Vec<u8>>,
        /// A token for the next login (XEP-0484).
        token: Option<Element>,
    },
    /// The result of the bind IQ with this id.
    Bind {
        /// The IQ's id.
        id: Box<str>,
    },
}

impl Authenticated {
    pub(super) fn proved(
        jid: BareJid,
        domain: DomainId,
        identity: Identity,
        since: Moment,
        stamp: Option<Stamp>,
        known: Option<Box<Login>>,
    ) -> Authenticated {
        let Identity { account, revocations, .. } = identity;
        Authenticated { jid, domain, account, revocations, since, stamp, known }
    }

    /// The account.
    pub fn jid(&self) -> &BareJid {
        &self.jid
    }

    /// Its domain.
    pub fn domain(&self) -> DomainId {
        self.domain
    }

    /// Its number.
    pub fn account(&self) -> AccountId {
        self.account
    }

    /// Whether the account's password or state was altered since the client proved itself by what they were.
    pub fn is_outdated(&self, cx: &Cx<'_>) -> bool {
        cx.shard.altered.is_after(self.jid.as_str(), self.since)
    }

    /// What belongs to the account, where the node remembers it.
    pub fn take_known(&mut self) -> Option<Box<Login>> {
        self.known.take()
    }

    /// Has the node remember the account for when its client comes back with a token.
    pub fn remember(&self, login: &Login, cx: &mut Cx<'_>) {
        if let Some(stamp) = self.stamp {
            let known = Known { account: self.account, revocations: &self.revocations, login };
            cx.remember(&self.jid, self.domain, known, stamp);
        }
    }

    /// The token that the client is to have. It is given where it could be used: on a connection that yields what its
    /// mechanism binds to, and at least TLS that ends here.
    fn token(&self, inline: &Inline, protection: &Protection, cx: &mut Cx<'_>) -> Option<Element> {
        let (stamp, agent) = (self.stamp?, inline.tokens.agent?);
        let mechanism = inline.tokens.token_for.filter(|m| m.binding(protection).is_some())?;
        let settings = cx.shard.settings.clone();
        let tokens = Tokens {
            secret: &settings.secret,
            lifetime_ms: settings.fast.token_lifetime_ms,
            stamp,
            revocations: &self.revocations,
            agent,
            mechanism,
        };
        let given = tokens.give(cx.now.unix);
        cx.shard.replays.begin(given.name);
        Some(fast::element(&given.token, given.expires))
    }

    /// Tells the client, which began to log in at `began`, of its success.
    pub(super) fn greet(
        self,
        mut io: Io,
        greeting: Greeting,
        began: Mono,
        protection: &Protection,
        cx: &mut Cx<'_>,
    ) -> Session {
        cx.shard.counters.logins += 1;
        cx.shard.counters.login.record(cx.now.mono.since(began));
        io.reader.trust(&cx.shard.settings.limits);
        let Greeting::Success { wrap, data, .. } = greeting else {
            unreachable!("SASL greets with its success")
        };
        cx.wake_in(io.conn, cx.shard.settings.timeouts.bind_ms, Wake::Bind);
        match wrap {
            Wrap::Classic => {
                let success = Element::new("success", ns::SASL);
                let success = match data {
                    Some(data) => success.with_text(sasl::encode(&data)),
                    None => success,
                };
                io.send_element(&success, cx);
                io.reader.restart();
                Session::Restarting(Box::new(Restarting { io, authenticated: self }))
            }
            Wrap::Sasl2(inline) => {
                let token = self.token(&inline, protection, cx);
                match inline.bind.as_ref().map(|bind| tagged(&self, bind, cx)) {
                    None => {
                        io.send_element(&success2(data.as_deref(), self.jid.as_str(), token), cx);
                        Binding::offer(io, self, cx)
                    }
                    Some(Ok(jid)) => {
                        let greeting = Greeting::Success { wrap: Wrap::Sasl2(inline), data, token };
                        Loading::begin(io, self, jid, greeting, cx)
                    }
                    Some(Err(_)) => {
                        io.send_element(&Wrap::Sasl2(inline).failure(Failure::MalformedRequest), cx);
                        Closing::politely(io, cx)
                    }
                }
            }
        }
    }
}

/// SASL2's success.
pub fn success2(data: Option<&[u8]>, identifier: &str, token: Option<Element>) -> Element {
    let mut success = Element::new("success", ns::SASL2);
    if let Some(data) = data {
        success.push(Element::new("additional-data", ns::SASL2).with_text(sasl::encode(data)));
    }
    success.push(Element::new("authorization-identifier", ns::SASL2).with_text(identifier));
    token.into_iter().for_each(|token| success.push(token));
    success
}

/// Bind 2: the server makes the resource, of the client's tag and something of its own (XEP-0386 §3.2).
fn tagged(
    authenticated: &Authenticated,
    bind: &Element,
    cx: &mut Cx<'_>,
) -> Result<carillon_wire::jid::Jid, StanzaError> {
    let tag = bind.child("tag", ns::BIND2).map(Element::text).filter(|tag| !tag.is_empty());
    let own = cx.shard.random.token();
    let resource = match tag {
        Some(tag) => format!("{tag}/{}", &own[..12]),
        None => own,
    };
    choose(authenticated, Some(&resource), cx)
}
