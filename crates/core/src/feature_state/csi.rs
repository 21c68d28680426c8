//! What is known of a session.

use carillon_wire::stanza::Stanza;

/// What is held back; none while the client is active.
#[derive(Debug, Default)]
pub struct ClientState(pub(crate) Option<Box<Held>>);

crate::form! { struct ClientState(held) }

/// The newest presence of each sender, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Held(pub(crate) Vec<Stanza>);

crate::form! { struct Held(stanzas) }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::testing::proves;
    use carillon_wire::stanza::PresenceType;

    #[test]
    fn its_form() {
        let from = |jid| {
            Stanza::presence(PresenceType::Unavailable).with_from(carillon_wire::jid::Jid::new(jid).unwrap())
        };
        proves(
            "csi",
            &ClientState(Some(Box::new(Held(vec![from("ann@example.org/1"), from("bob@example.org")])))),
        );
        proves("csi, active", &ClientState::default());
    }
}
