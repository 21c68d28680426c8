//! The presence of a client in a room, in little memory: rooms and sessions keep one for each client and room.

use super::archive::read;
use carillon_wire::Framing;
use carillon_wire::ns;
use carillon_wire::stanza::{PresenceType, Stanza};

/// What a client says of its presence in a room: its stanza's id, language and content, without addresses and without what only the room says. It is kept
/// written out, as it is read again only when it is shown to somebody; one that says nothing takes no memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoomPresence(Option<Box<[u8]>>);

/// Elements of a presence that are for the room, or that only the room says.
const NOT_SHOWN: [(&str, &str); 3] = [("x", ns::MUC), ("x", ns::MUC_USER), ("occupant-id", ns::OCCUPANT_ID)];

impl RoomPresence {
    /// What a client says by this stanza.
    pub fn of(stanza: &Stanza) -> RoomPresence {
        let mut presence = stanza.clone();
        (presence.to, presence.from) = (None, None);
        for (name, ns) in NOT_SHOWN {
            presence.payload.remove(name, ns);
        }
        if presence.payload.bytes().is_empty() && presence.id.is_none() && presence.lang.is_none() {
            return RoomPresence(None);
        }
        let mut written = Vec::new();
        presence.write(&mut written, Framing::Tcp);
        RoomPresence(Some(written.into()))
    }

    /// It as a stanza without addresses.
    pub fn stanza(&self) -> Stanza {
        let kept = self.0.as_deref().and_then(read);
        kept.unwrap_or_else(|| Stanza::presence(PresenceType::Available))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_wire::jid::Jid;
    use carillon_wire::xml::Element;

    #[test]
    fn what_others_are_shown_is_kept_and_nothing_else() {
        let occupant = Jid::new("tea@rooms.example.org/Ann").unwrap();
        let mut presence = Stanza::presence(PresenceType::Available).with_to(occupant);
        presence.payload.push_element(&Element::new("x", ns::MUC));
        assert_eq!(RoomPresence::of(&presence), RoomPresence::default());
        assert_eq!(RoomPresence::default().stanza(), Stanza::presence(PresenceType::Available));

        let show = Element::new("show", ns::CLIENT).with_text("a < b");
        presence.payload.push_element(&show);
        (presence.id, presence.lang) = (Some("1'2".into()), Some("de".into()));
        let kept = RoomPresence::of(&presence).stanza();
        assert_eq!((kept.to.clone(), kept.from.clone()), (None, None));
        assert_eq!((kept.id.as_deref(), kept.lang.as_deref()), (Some("1'2"), Some("de")));
        let children: Vec<Element> = kept.payload.children().map(|child| child.element()).collect();
        assert_eq!(children, [show]);
    }
}
