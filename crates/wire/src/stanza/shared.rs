//! A stanza that many are given, each with its own `to`.

use super::Stanza;
use crate::Framing;
use crate::jid::Jid;
use crate::ns;
use crate::xml::writer::Writer;

/// A stanza that is the same for all its recipients but for `to`. What is the same is serialised once: for each recipient it is copied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SharedStanza {
    stanza: Stanza,
    /// The start tag behind `to`, with its end.
    head: Box<[u8]>,
}

impl SharedStanza {
    /// A stanza for many. It is written with the recipient's address, whatever its own `to` is.
    pub fn new(stanza: Stanza) -> SharedStanza {
        let mut head = Vec::with_capacity(96);
        stanza.write_after_to(&mut Writer::new(&mut head));
        SharedStanza { stanza, head: head.into() }
    }

    /// The stanza. Its `to` means nothing.
    pub fn stanza(&self) -> &Stanza {
        &self.stanza
    }

    /// The stanza as one recipient is given it.
    pub fn for_one(&self, to: Jid) -> Stanza {
        self.stanza.clone().with_to(to)
    }

    /// Appends the stanza for one recipient: the same as [`Stanza::write`] of [`SharedStanza::for_one`].
    pub fn write(&self, to: &str, out: &mut Vec<u8>, framing: Framing) {
        let name = self.stanza.name();
        let mut writer = Writer::new(out);
        match framing {
            Framing::Tcp => writer.start(name),
            Framing::WebSocket => writer.start_in(name, ns::CLIENT),
        };
        writer.attr("to", to).raw(&self.head);
        if !self.stanza.payload.bytes().is_empty() {
            writer.raw(self.stanza.payload.bytes()).end(name);
        }
    }

    /// Bytes that it takes in memory, whoever shares it.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() - size_of::<Stanza>() + self.stanza.memory_bytes() + self.head.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stanza::{MessageType, PresenceType};
    use crate::xml::Element;

    #[test]
    fn each_recipient_is_given_the_stanza_with_its_own_address() {
        let from = Jid::new("tea@rooms.example.org/A'nn & <Bob>").unwrap();
        let mut said = Stanza::message(MessageType::Groupchat).with_from(from.clone()).with_id("1'2");
        said.lang = Some("en".into());
        said.payload.push_element(&Element::new("body", ns::CLIENT).with_text("a < b"));
        let bare = Stanza::presence(PresenceType::Available).with_from(from);
        for stanza in [said, bare] {
            let shared = SharedStanza::new(stanza);
            for to in ["ann@example.org/o'clock", "bob@example.org"] {
                for framing in [Framing::Tcp, Framing::WebSocket] {
                    let (mut one, mut many) = (Vec::new(), Vec::new());
                    shared.for_one(Jid::new(to).unwrap()).write(&mut one, framing);
                    shared.write(to, &mut many, framing);
                    assert_eq!(String::from_utf8(many), String::from_utf8(one));
                }
            }
        }
    }
}
