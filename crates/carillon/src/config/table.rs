//! Settings of which there are many: a table for each, with a name and the same settings in each.

use super::declare::Setting;
use super::kind::Written;
use super::{Place, Problem};
use std::borrow::Cow;

/// The name and the setting that a key gives, if it is of a table in `tables`.
pub(super) fn split<'a>(tables: &str, key: &'a str) -> Option<(&'a str, &'a str)> {
    key.strip_prefix(tables)?.strip_prefix('.')?.rsplit_once('.')
}

/// Gives the setting `member` of a table its value.
pub(super) fn put<S: Default>(
    list: &'static [Setting<S>],
    settings: &mut S,
    (key, member): (String, &str),
    written: &Written,
    place: Place,
) -> Result<(), Problem> {
    let Some(setting) = list.iter().find(|setting| setting.key == member) else {
        let distance = |setting: &&Setting<S>| strsim::damerau_levenshtein(setting.key, member);
        let nearest = list.iter().min_by_key(distance).filter(|setting| distance(setting) <= 2);
        return Err(Problem::Unknown { place, key, nearest: nearest.map(|setting| setting.key) });
    };
    match setting.kind.read(written) {
        Ok(value) => {
            setting.put(settings, value);
            Ok(())
        }
        Err(misfit) => Err(misfit.of(place, Cow::Owned(key), written, &setting.kind)),
    }
}

/// Whether a table can have this name.
pub(super) fn is_name(name: &str) -> bool {
    let is_word = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    (1..=64).contains(&name.len()) && name.bytes().all(is_word)
}
