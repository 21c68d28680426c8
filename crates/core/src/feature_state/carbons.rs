//! What is known of a session.

/// Whether a session wants copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Carbons {
    /// It wants none.
    #[default]
    Off,
    /// It wants them.
    On,
}

crate::form! { enum Carbons { 0 = Off, 1 = On } }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::testing::proves;

    #[test]
    fn its_form() {
        proves("carbons", &vec![Carbons::Off, Carbons::On]);
    }
}
