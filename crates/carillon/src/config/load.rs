//! From the text of a settings file, the environment and the options of the command line to settings.

use super::declare::Setting;
use super::kind::{Kind, Misfit, Shape, Written};
use super::problem::{Place, Problem, Problems};
use super::settings::SETTINGS;
use super::{
    Config, Origin, Profile, Settings, Source, Value, check, environment, push_apps, push_templates, queues,
    table,
};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Something written for some key, somewhere.
struct Assignment {
    key: String,
    written: Written,
    place: Place,
}

/// The settings of `source`, whose file has this `text`, in this environment. What comes later counts more: the file, the
/// environment, the command line.
pub(super) fn load(
    source: &Source,
    text: Option<&str>,
    environment: &[(String, String)],
) -> Result<Config, Problems> {
    let mut problems = Vec::new();
    let mut entries = Vec::new();
    if let (Some(file), Some(text)) = (&source.file, text) {
        match DeTable::parse(text) {
            Ok(table) => flatten(file, text, "", table.get_ref(), &mut entries),
            Err(e) => {
                let place = Place::in_file(file, text, e.span().map_or(0, |s| s.start));
                problems.push(Problem::Syntax { place, reason: e.message().to_owned() });
            }
        }
    }
    let mut warnings = Vec::new();
    for (name, value) in environment {
        match environment::key(name) {
            Some(key) => entries.push(Assignment {
                key: key.to_owned(),
                written: Written::typed(value.trim()),
                place: Place::Environment(name.clone()),
            }),
            None => warnings.extend(environment::unknown(name)),
        }
    }
    for text in &source.overrides {
        match text.split_once('=') {
            Some((key, value)) => entries.push(Assignment {
                key: key.trim().to_owned(),
                written: Written::typed(value.trim()),
                place: Place::CommandLine,
            }),
            None => problems.push(Problem::NotAnAssignment { text: text.clone() }),
        }
    }

    if let Some(folder) = &source.data_dir {
        entries.push(Assignment {
            key: "data_dir".to_owned(),
            written: Written::typed(&folder.display().to_string()),
            place: Place::Option("--data-dir"),
        });
    }

    let mut config = Config {
        settings: Settings::default(),
        warnings,
        source: source.clone(),
        origins: vec![Origin::Default; SETTINGS.len()],
        queue_places: BTreeMap::new(),
        app_places: BTreeMap::new(),
        template_places: BTreeMap::new(),
    };
    problems.extend(entries.into_iter().filter_map(|entry| apply(&mut config, entry).err()));
    apply_profile(&mut config);
    // A value that could not be read would break rules that what was meant keeps.
    if problems.is_empty() {
        problems = check::check(&config);
    }
    if problems.is_empty() { Ok(config) } else { Err(Problems(problems)) }
}

/// Puts the leaves of `table` into `entries`, in the order they are written.
fn flatten(file: &Path, text: &str, prefix: &str, table: &DeTable<'_>, entries: &mut Vec<Assignment>) {
    let mut leaves: Vec<_> = table.iter().collect();
    leaves.sort_by_key(|(key, _)| key.span().start);
    for (key, value) in leaves {
        let path = format!("{prefix}{}", key.get_ref());
        match value.get_ref() {
            // An unknown table without settings in it is a mistake as well.
            DeValue::Table(inner) if !inner.is_empty() || is_table(&path) => {
                flatten(file, text, &format!("{path}."), inner, entries);
            }
            _ => entries.push(Assignment {
                key: path,
                written: Written {
                    text: text.get(value.span()).unwrap_or_default().to_owned(),
                    shape: shape(value),
                },
                place: Place::in_file(file, text, key.span().start),
            }),
        }
    }
}

/// Whether settings have keys in this table.
fn is_table(path: &str) -> bool {
    SETTINGS.iter().any(|s| s.key.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')))
}

fn shape(value: &Spanned<DeValue<'_>>) -> Shape {
    match value.get_ref() {
        DeValue::String(text) => Shape::Text(text.to_string()),
        DeValue::Boolean(on) => Shape::Bool(*on),
        DeValue::Integer(i) => {
            i128::from_str_radix(i.as_str(), i.radix()).map_or(Shape::Other, Shape::Integer)
        }
        DeValue::Array(items) => Shape::List(items.iter().map(shape).collect()),
        DeValue::Float(_) | DeValue::Datetime(_) | DeValue::Table(_) => Shape::Other,
    }
}

/// Gives the setting of `entry` its value.
fn apply(config: &mut Config, Assignment { key, written, place }: Assignment) -> Result<(), Problem> {
    if let Some((queue, member)) = table::split(queues::TABLE, &key) {
        return queues::apply(config, queue, member, &written, place);
    }
    if let Some((app, member)) = table::split(push_apps::TABLE, &key) {
        return push_apps::apply(config, app, member, &written, place);
    }
    if let Some((name, member)) = table::split(push_templates::TABLE, &key) {
        return push_templates::apply(config, name, member, &written, place);
    }
    let Some(index) = SETTINGS.iter().position(|s| s.key == key) else {
        let nearest = nearest(&key);
        return Err(Problem::Unknown { place, key, nearest });
    };
    let setting = &SETTINGS[index];
    match setting.kind.read(&written) {
        Ok(value) => {
            setting.put(&mut config.settings, value);
            config.origins[index] = Origin::Set(place);
            Ok(())
        }
        Err(misfit) => Err(misfit.of(place, setting.key.into(), &written, &setting.kind)),
    }
}

/// Gives the limits that are at their default that of the profile. A limit may be written at its default, as in the
/// sample file: that is no wish of its own.
fn apply_profile(config: &mut Config) {
    if config.settings.profile != Profile::Benchmark {
        return;
    }
    for (i, setting) in SETTINGS.iter().enumerate() {
        let Some(lifted) = setting.benchmark else { continue };
        if setting.value(&config.settings) == setting.default() {
            setting.put(&mut config.settings, Value::Number(lifted));
            config.origins[i] = Origin::Profile;
        }
    }
}

impl Misfit {
    /// The problem that it is.
    pub(super) fn of(self, place: Place, key: Cow<'static, str>, written: &Written, kind: &Kind) -> Problem {
        let (written, takes) = (written.text.clone(), kind.to_string());
        match self {
            Misfit::Type => Problem::Type { place, key, written, takes },
            Misfit::Bound => Problem::Bound { place, key, written, takes },
        }
    }
}

/// The setting that `key` may be a slip of: the right name in the wrong table, or a few letters off.
pub fn nearest(key: &str) -> Option<&'static str> {
    let last = |key: &'_ str| key.rsplit('.').next().unwrap_or_default().to_owned();
    let mut namesakes = SETTINGS.iter().filter(|s| last(s.key) == last(key));
    if let (Some(Setting { key, .. }), None) = (namesakes.next(), namesakes.next()) {
        return Some(key);
    }
    SETTINGS
        .iter()
        .map(|s| (strsim::damerau_levenshtein(key, s.key), s.key))
        .min()
        .filter(|(distance, _)| *distance <= 2.max(key.len() / 4))
        .map(|(_, key)| key)
}
