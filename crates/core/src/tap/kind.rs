//! What of an account is told.

/// What of an account is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What its clients send.
    In,
    /// What they are sent.
    Out,
    /// Where its stanzas go, and what becomes of those that come for it.
    Route,
    /// What was settled, acknowledged or kept.
    Store,
    /// Sessions that open, close, are parked or are resumed.
    Session,
}

impl Kind {
    /// All kinds, as they are listed to people.
    pub const ALL: [Kind; 5] = [Kind::In, Kind::Out, Kind::Route, Kind::Store, Kind::Session];

    /// Its name in the API.
    pub fn word(self) -> &'static str {
        match self {
            Kind::In => "in",
            Kind::Out => "out",
            Kind::Route => "route",
            Kind::Store => "store",
            Kind::Session => "session",
        }
    }
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds(u8);

impl Kinds {
    /// All of them.
    pub const ALL: Kinds = Kinds(0b1_1111);

    /// The set with one more kind.
    #[must_use]
    pub fn with(self, kind: Kind) -> Kinds {
        Kinds(self.0 | 1 << kind as u8)
    }

    /// Whether a kind is in the set.
    pub fn contain(self, kind: Kind) -> bool {
        self.0 & 1 << kind as u8 != 0
    }
}
