//! The hooks of the features that are enabled, in the order of [`ORDER`].

pub use crate::features::ORDER;
use crate::session::hook::Feature;
use crate::session::pipeline::Pipeline;
use crate::settings::Settings;

/// The pipeline of all features but those that are disabled, or that have not what they need.
pub fn of(settings: &Settings) -> Pipeline {
    let is_disabled = |name: &str| settings.features_disabled.iter().any(|disabled| disabled == name);
    let is_on = |feature: &&Feature| !is_disabled(feature.name) && (feature.is_on)(settings);
    Pipeline::new(ORDER.iter().copied().filter(is_on).collect())
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
