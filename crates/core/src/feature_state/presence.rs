//! What is known of a session.

use carillon_wire::jid::Jid;

/// Who a session sent directed presence to.
#[derive(Debug, Default)]
pub struct DirectedPresence {
    /// They are sent its unavailable presence when it ends.
    #[expect(
        clippy::box_collection,
        reason = "eight bytes in a session that never uses it, not twenty-four"
    )]
    pub(crate) directed: Option<Box<Vec<Jid>>>,
}

crate::form! { struct DirectedPresence { directed } }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::testing::proves;

    #[test]
    fn its_form() {
        let directed = ["room@example.org/ann", "bob@example.org"].map(|jid| Jid::new(jid).unwrap());
        proves("presence", &DirectedPresence { directed: Some(Box::new(directed.to_vec())) });
        proves("presence, none", &DirectedPresence::default());
    }
}
