//! The hooks of the features that are enabled, in the order of [`ORDER`].

pub use crate::features::ORDER;
use crate::session::pipeline::Pipeline;

/// The pipeline of all features but those named.
pub fn of(disabled: &[String]) -> Pipeline {
    Pipeline::new(ORDER.iter().copied().filter(|f| !disabled.iter().any(|d| d == f.name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::{carbons, pep};
    use crate::session::hook::taken_twice;

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
