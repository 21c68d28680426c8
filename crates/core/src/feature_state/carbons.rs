//! What is known of a session.

/// Whether a session wants copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// It wants none.
    #[default]
    Off,
    /// It wants them.
    On,
}

crate::form! { enum State { 0 = Off, 1 = On } }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::testing::proves;

    #[test]
    fn its_form() {
        proves("carbons", &vec![State::Off, State::On]);
    }
}
