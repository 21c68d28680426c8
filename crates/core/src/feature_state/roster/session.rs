//! What is known of a session.

/// Whether a session has asked for the roster, and is told of its changes from then on (RFC 6121 §2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RosterInterest {
    pub(crate) is_interested: bool,
}

crate::form! { struct RosterInterest { is_interested } }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::testing::proves;

    #[test]
    fn its_form() {
        proves("roster", &RosterInterest { is_interested: true });
    }
}
