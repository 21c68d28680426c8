//! The hooks of the features that are enabled, in the order of [`ORDER`].

pub use crate::features::ORDER;
use crate::session::hook::Feature;
use crate::session::pipeline::Pipeline;
use crate::settings::Settings;

/// The pipeline of all features but those that are disabled, or that have not what they need; what takes modules has no work without one.
pub fn of(settings: &Settings) -> Pipeline {
    let is_on = |feature: &&Feature| {
        feature.hooks.set_modules.is_none() && !is_disabled(feature, settings) && (feature.is_on)(settings)
    };
    Pipeline::new(ORDER.iter().copied().filter(is_on).collect())
}

/// The same features as before, with what takes modules or without it. Stanzas that wait in one go on in the other.
pub fn with_modules(before: &Pipeline, settings: &Settings, has_modules: bool) -> Pipeline {
    let is_on = |feature: &&Feature| match feature.hooks.set_modules {
        Some(_) => has_modules && !is_disabled(feature, settings),
        None => before.features().iter().any(|known| known.name == feature.name),
    };
    Pipeline::new(ORDER.iter().copied().filter(is_on).collect())
}

fn is_disabled(feature: &Feature, settings: &Settings) -> bool {
    settings.features_disabled.iter().any(|disabled| disabled == feature.name)
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
