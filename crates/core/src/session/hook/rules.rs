//! Rules that senders give with their messages: what is to be done if so much becomes of one (XEP-0079).

use super::{Cx, Stanza};
use crate::error::StanzaError;
use crate::model::UnixMs;

/// What becomes of a message.
#[derive(Clone, Copy, Debug)]
pub enum Handling<'a> {
    /// Sessions with these resources are given it at once.
    Direct(&'a [&'a str]),
    /// It is kept until the account is there.
    Stored,
    /// Nobody is given it, and it is not kept.
    Nowhere,
    /// It was kept, and it is this late now.
    Kept(UnixMs),
}

/// Carries out the rules of messages.
pub struct RulesHandler {
    /// Whether a message carries rules.
    pub has: fn(message: &Stanza) -> bool,
    /// The error for a sender that does not see the recipient's presence, if the rules of its message would tell it of that.
    pub reveals: fn(message: &Stanza) -> Option<StanzaError>,
    /// Whether a rule ends a message of which this would become. Its sender is told what the rule says.
    pub ends: fn(message: &Stanza, would: Handling<'_>, cx: &mut Cx<'_>) -> bool,
    /// This became of a message: its sender is told if a rule says so.
    pub became: fn(message: &Stanza, became: Handling<'_>, cx: &mut Cx<'_>),
    /// When a rule ends a message that is kept, if one does.
    pub expires: fn(message: &Stanza) -> Option<UnixMs>,
}
