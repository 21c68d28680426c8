//! What is known of a session.

use crate::model::Mono;

/// When the client was last pinged.
#[derive(Debug, Default)]
pub struct Pinged {
    pub(crate) asked: Mono,
    /// Whether one of the timers is set.
    pub(crate) timer_runs: bool,
}

crate::form! { struct Pinged { asked, timer_runs } }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::testing::proves;

    #[test]
    fn its_form() {
        proves("ping", &Pinged { asked: Mono(940_000), timer_runs: true });
    }
}
