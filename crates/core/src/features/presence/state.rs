//! What is known of a session.

use carillon_wire::jid::Jid;

/// Who a session sent directed presence to.
#[derive(Debug, Default)]
pub struct State {
    /// They are sent its unavailable presence when it ends.
    #[expect(
        clippy::box_collection,
        reason = "eight bytes in a session that never uses it, not twenty-four"
    )]
    pub(super) directed: Option<Box<Vec<Jid>>>,
}
