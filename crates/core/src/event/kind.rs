//! Kinds of entries, and the fields each has. Everything that reads or prints entries goes by this table.

/// What kind of thing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A shard begins.
    Start,
    /// A shard shuts down.
    Stop,
    /// A connection was accepted.
    Connect,
    /// A session was bound.
    Login,
    /// A login failed.
    LoginFailure,
    /// A session ended, or a connection that never had one.
    Disconnect,
    /// A notification was taken from its sender.
    Accept,
    /// A notification was given to a connection.
    Deliver,
    /// A session acknowledged a notification.
    Acknowledge,
    /// A notification ended without being acknowledged.
    Drop,
    /// An item was published.
    Publish,
    /// An item was given to a connection.
    Item,
    /// A client resumed a session.
    Resume,
    /// A match is over.
    MatchEnded,
    /// A room was created.
    RoomCreated,
    /// A room was removed.
    RoomDestroyed,
    /// Somebody had an occupant leave a room.
    RoomRemoved,
}

/// A field of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name in the log.
    pub name: &'static str,
    /// The type of its values.
    pub shape: Shape,
}

/// The type of a field's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A text, or none.
    Text,
    /// A whole number.
    Number,
    /// The id of a notification.
    Notification,
    /// An IP address.
    Address,
    /// Yes, no, or unknown.
    Flag,
}

impl Kind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Kind; 17] = [
        Kind::Start,
        Kind::Stop,
        Kind::Connect,
        Kind::Login,
        Kind::LoginFailure,
        Kind::Disconnect,
        Kind::Accept,
        Kind::Deliver,
        Kind::Acknowledge,
        Kind::Drop,
        Kind::Publish,
        Kind::Item,
        Kind::Resume,
        Kind::MatchEnded,
        Kind::RoomCreated,
        Kind::RoomDestroyed,
        Kind::RoomRemoved,
    ];

    /// The kind with this number.
    pub fn of(number: u8) -> Option<Kind> {
        Kind::ALL.get(usize::from(number)).copied()
    }

    /// The kind with this name.
    pub fn named(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// Its name in the log.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Start => "start",
            Kind::Stop => "stop",
            Kind::Connect => "connect",
            Kind::Login => "login",
            Kind::LoginFailure => "login-failure",
            Kind::Disconnect => "disconnect",
            Kind::Accept => "accept",
            Kind::Deliver => "deliver",
            Kind::Acknowledge => "acknowledge",
            Kind::Drop => "drop",
            Kind::Publish => "publish",
            Kind::Item => "item",
            Kind::Resume => "resume",
            Kind::MatchEnded => "match-ended",
            Kind::RoomCreated => "room-created",
            Kind::RoomDestroyed => "room-destroyed",
            Kind::RoomRemoved => "room-removed",
        }
    }

    /// The fields of its entries, in their order.
    pub fn fields(self) -> &'static [Field] {
        use Shape::{Address, Flag, Notification, Number, Text};
        const fn field(name: &'static str, shape: Shape) -> Field {
            Field { name, shape }
        }
        const ID: Field = field("id", Notification);
        const TO: Field = field("to", Text);
        const JID: Field = field("jid", Text);
        const ADDRESS: Field = field("address", Address);
        const TRANSPORT: Field = field("transport", Text);
        const TLS: Field = field("tls", Flag);
        const REASON: Field = field("reason", Text);
        const AFTER: Field = field("after_ms", Number);
        const DOMAIN: Field = field("domain", Text);
        const TOPIC: Field = field("topic", Text);
        const ITEM: Field = field("item", Text);
        const ACCOUNT: Field = field("account", Text);
        const AUDIENCE: Field = field("audience", Text);
        const PRIORITY: Field = field("priority", Text);
        const BY: Field = field("by", Text);
        const MATCH: Field = field("match", Text);
        const QUEUE: Field = field("queue", Text);
        const TICKS: Field = field("ticks", Number);
        const OUTCOME: Field = field("outcome", Text);
        const ROOM: Field = field("room", Text);
        match self {
            Kind::Start | Kind::Stop => &[],
            Kind::Connect => &[ADDRESS, TRANSPORT, TLS],
            Kind::Login | Kind::Resume => &[JID, ADDRESS, TRANSPORT, TLS],
            Kind::LoginFailure => &[ACCOUNT, ADDRESS, REASON],
            Kind::Disconnect => &[JID, ADDRESS, REASON, AFTER],
            Kind::Accept => &[ID, TO, AUDIENCE, PRIORITY],
            Kind::Deliver => &[ID, TO, AFTER],
            Kind::Acknowledge => &[ID, TO, BY, AFTER],
            Kind::Drop => &[ID, TO, REASON],
            Kind::Publish => &[DOMAIN, TOPIC, ITEM],
            Kind::Item => &[TOPIC, ITEM, TO, AFTER],
            Kind::MatchEnded => &[MATCH, QUEUE, REASON, TICKS, OUTCOME],
            Kind::RoomCreated => &[ROOM, BY],
            Kind::RoomDestroyed => &[ROOM, REASON, BY],
            Kind::RoomRemoved => &[ROOM, ACCOUNT, REASON, BY],
        }
    }
}

/// A set of kinds; by default none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds(u32);

impl Kinds {
    /// The set of these kinds.
    pub fn of(kinds: impl IntoIterator<Item = Kind>) -> Kinds {
        Kinds(kinds.into_iter().fold(0, |set, kind| set | 1 << kind as u8))
    }

    /// The set of all kinds.
    pub fn all() -> Kinds {
        Kinds::of(Kind::ALL)
    }

    /// Whether a kind is in the set.
    pub fn contains(self, kind: Kind) -> bool {
        self.0 & 1 << kind as u8 != 0
    }
}
