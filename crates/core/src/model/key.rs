//! API keys: who may do what over HTTP.

use super::{DomainId, KeyId, UnixMs};

/// One thing an API key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Send notifications and follow what becomes of them.
    Send,
    /// Manage topics and publish to them.
    Topics,
    /// Enrol devices and manage what they follow.
    Enrol,
    /// Everything but [`Scope::ReadMessages`] and [`Scope::TracePayload`]: in the key's domain, or on the whole node for a key without a domain.
    Admin,
    /// Read what people wrote to each other: the messages in archives.
    #[serde(rename = "read_messages")]
    ReadMessages,
    /// Act for people: send as an account, edit its roster and its block list, and see its conversations.
    Chat,
    /// Make short links, and change and remove them.
    Links,
    /// Manage rooms and their members, say something in them, and moderate them.
    Rooms,
    /// Send notifications to all accounts of a domain.
    Broadcast,
    /// See the contents of stanzas in a trace.
    #[serde(rename = "trace_payload")]
    TracePayload,
    /// Declare queues of the matchmaker, enter tickets for accounts, and look at matches.
    Matches,
}

impl Scope {
    /// Every scope, in the order they are listed to people.
    pub const ALL: [Scope; 11] = [
        Scope::Send,
        Scope::Broadcast,
        Scope::Topics,
        Scope::Enrol,
        Scope::Chat,
        Scope::Rooms,
        Scope::Links,
        Scope::Matches,
        Scope::Admin,
        Scope::ReadMessages,
        Scope::TracePayload,
    ];

    /// Its name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Send => "send",
            Scope::Topics => "topics",
            Scope::Enrol => "enrol",
            Scope::Admin => "admin",
            Scope::ReadMessages => "read_messages",
            Scope::Chat => "chat",
            Scope::Links => "links",
            Scope::Rooms => "rooms",
            Scope::Broadcast => "broadcast",
            Scope::TracePayload => "trace_payload",
            Scope::Matches => "matches",
        }
    }
}

/// A set of scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scopes(u16);

impl Scopes {
    /// The set of `scopes`.
    pub fn of(scopes: &[Scope]) -> Scopes {
        Scopes(scopes.iter().fold(0, |bits, s| bits | 1 << *s as u8))
    }

    /// Whether the set allows `scope`: it holds it, or [`Scope::Admin`], which does not stand for [`Scope::ReadMessages`] and
    /// [`Scope::TracePayload`].
    pub fn allow(self, scope: Scope) -> bool {
        let holds = |scope| self.0 & 1 << scope as u8 != 0;
        let is_apart = matches!(scope, Scope::ReadMessages | Scope::TracePayload);
        holds(scope) || (!is_apart && holds(Scope::Admin))
    }

    /// The scopes of the set.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |s| self.0 & 1 << *s as u8 != 0)
    }

    /// As a number, for the store.
    pub fn bits(self) -> u16 {
        self.0
    }

    /// From a number of [`Scopes::bits`]; unknown bits are dropped.
    pub fn from_bits(bits: u16) -> Scopes {
        Scopes(bits & Scopes::of(&Scope::ALL).0)
    }
}

/// An API key as the store keeps it: never the key itself, only its SHA-256.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// Its number.
    pub id: KeyId,
    /// What people call it.
    pub name: Box<str>,
    /// The domain it is bound to; none for the whole node.
    pub domain: Option<DomainId>,
    /// What it may do.
    pub scopes: Scopes,
    /// When it was created.
    pub created: UnixMs,
    /// Until when it counts; none for ever.
    pub expires: Option<UnixMs>,
    /// The networks from which it may be used; empty for any.
    pub networks: Box<[Box<str>]>,
    /// Names of which the certificate that the client shows must have one; empty where it need not show one.
    pub certificates: Box<[Box<str>]>,
    /// When it was used lately, to an hour; none if it was not since that is noted.
    pub used: Option<UnixMs>,
}

impl ApiKey {
    /// Whether its time is over.
    pub fn is_expired(&self, now: UnixMs) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }
}
