//! Settings in the environment: `c2s.port` is `CARILLON_C2S_PORT`.

use super::settings::SETTINGS;

/// What the names of all of this program's variables begin with.
const PREFIX: &str = "CARILLON_";
/// Variables that are no settings: what commands take in place of an option, what a live upgrade starts the new process with, and
/// those of the load tester.
const OTHERS: [&str; 3] = ["CARILLON_URL", "CARILLON_KEY", "CARILLON_UPGRADE"];
const LOAD_TESTER: &str = "CARILLON_LOAD_";

/// The variable of a setting.
pub(super) fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.replace('.', "_").to_ascii_uppercase())
}

/// The variables of this process whose names begin with the prefix. One that is not text is no value of any setting.
pub(super) fn variables() -> Vec<(String, String)> {
    let texts = std::env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok().filter(|name| name.starts_with(PREFIX))?;
        Some((name, value.to_string_lossy().into_owned()))
    });
    let mut variables: Vec<_> = texts.collect();
    variables.sort();
    variables
}

/// The setting that a variable is for.
pub(super) fn key(name: &str) -> Option<&'static str> {
    SETTINGS.iter().map(|setting| setting.key).find(|key| variable(key) == name)
}

/// What to say of a variable that names no setting; nothing when it is for something else.
pub(super) fn unknown(name: &str) -> Option<String> {
    if OTHERS.contains(&name) || name.starts_with(LOAD_TESTER) {
        return None;
    }
    let nearest = SETTINGS
        .iter()
        .map(|setting| variable(setting.key))
        .map(|known| (strsim::damerau_levenshtein(name, &known), known))
        .min()
        .filter(|(distance, _)| *distance <= 2.max((name.len() - PREFIX.len()) / 4));
    let hint = nearest.map(|(_, known)| format!("; did you mean {known}?")).unwrap_or_default();
    Some(format!("the variable {name} is for no setting{hint}"))
}
