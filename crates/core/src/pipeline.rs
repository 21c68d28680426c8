//! THE ORDER of features. Every hook runs in the order of [`ORDER`]; there are no priorities anywhere else.

use crate::features::*;
use crate::session::hook::{Feature, taken_twice};
use crate::session::pipeline::Pipeline;

/// All features, in the order in which their hooks run.
pub const ORDER: &[&Feature] = &[
    // Counts what came in before anything may refuse it, and what goes out after everything has let it pass.
    &stream_management::FEATURE,
    // Stamps ids before anything copies or keeps a message.
    &stanza_ids::FEATURE,
    // What waits for a session follows its initial presence in this order: offline messages, notifications, last items.
    // The services take what is addressed to them before it would be routed.
    &offline::FEATURE,
    &notifications::FEATURE,
    &pubsub::FEATURE,
    // Before those who give what it lets pass.
    &blocking::FEATURE,
    // Knows what clients want before they are given it.
    &caps::FEATURE,
    // Before those that describe an account without its nodes.
    &pep::FEATURE,
    // What has come and passes.
    &archive::FEATURE,
    // Answers about the archive.
    &inbox::FEATURE,
    // Takes what is said about subscriptions before presence would refuse it.
    &roster::FEATURE,
    &presence::FEATURE,
    // Copies what was sent, when everything else has let it pass.
    &carbons::FEATURE,
    &receipts::FEATURE,
    // Last on the way out: what it holds back was otherwise decided.
    &csi::FEATURE,
    &ping::FEATURE,
    // Before authentication: the one is offered inline with SASL2, the other beside SASL.
    &fast::FEATURE,
    &registration::FEATURE,
    &session_establishment::FEATURE,
    &json::FEATURE,
    &private::FEATURE,
    &vcard::FEATURE,
    &version::FEATURE,
    &time::FEATURE,
    &stream_limits::FEATURE,
    // Describes the others.
    &disco::FEATURE,
];

const _: () = assert!(taken_twice(ORDER).is_none(), "a hook that is for one feature has several");

/// The pipeline of all features but those named.
pub fn of(disabled: &[String]) -> Pipeline {
    Pipeline::new(ORDER.iter().copied().filter(|f| !disabled.iter().any(|d| d == f.name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_taker_of_a_hook_for_one_is_found() {
        assert_eq!(
            taken_twice(&[&carbons::FEATURE, &carbons::FEATURE]),
            None,
            "any number may have its hooks"
        );
        assert_eq!(taken_twice(&[&pep::FEATURE, &carbons::FEATURE, &pep::FEATURE]), Some("node_info"));
    }

    #[test]
    fn no_two_timers_have_one_name() {
        let timers: Vec<_> = ORDER.iter().flat_map(|f| f.hooks.timers).map(|h| h.timer.0).collect();
        let mut names = timers.clone();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), timers.len(), "{timers:?}");
    }
}
