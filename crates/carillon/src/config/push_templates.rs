//! The words in which devices show pushes: a table for each template, `push.templates.NAME`, with the same settings in each.

use super::declare::{Reload, Setting, settings};
use super::kind::{Kind, Written};
use super::value::Field;
use super::{Config, Place, Problem, table};
use carillon_http::{PushTemplateSettings, PushTemplates};

/// What the keys of all templates begin with.
pub(super) const TABLE: &str = "push.templates";

settings! {
    /// The settings of each template.
    PUSH_TEMPLATE of PushTemplateSettings;

    "The words in which devices show pushes. Each template is a table `push.templates.NAME` (docs/book/push.md), whose name has letters, digits, `-` and `_`. Placeholders are `{account}`, `{sender}`, `{room}`, `{title}`, `{body}` and `{messages}`; braces that are to be shown are written twice." {
        /// Domains for whose accounts the template is; empty for all that no other template is for.
        "domains" = domains, Kind::Names, Live;
        /// Titles: the first of which all placeholders are known, and may be told, is shown; without one, the sender.
        "title" = title, Kind::Texts, Live;
        /// Texts, likewise; without one, the message.
        "body" = body, Kind::Texts, Live;
    }
}

/// Gives a setting of a template its value.
pub(super) fn apply(
    config: &mut Config,
    name: &str,
    member: &str,
    written: &Written,
    place: Place,
) -> Result<(), Problem> {
    config.template_places.entry(name.to_owned()).or_insert_with(|| place.clone());
    let settings = config.settings.push_templates.entry(name.to_owned()).or_default();
    table::put(PUSH_TEMPLATE, settings, (format!("{TABLE}.{name}.{member}"), member), written, place)
}

/// Problems of templates: of each, and of those that are for the same accounts.
pub(super) fn check(config: &Config) -> Vec<Problem> {
    let problem = |name: &str, member: &str, rule: String| {
        let place = config.template_places.get(name)?.clone();
        Some(Problem::Rule { place, key: format!("{TABLE}.{name}{member}").into(), rule })
    };
    let broken = |(name, template): (&String, &PushTemplateSettings)| match table::is_name(name) {
        true => template.broken().and_then(|(member, rule)| problem(name, &format!(".{member}"), rule)),
        false => problem(name, "", "the name of a template has up to 64 letters, digits, - and _".to_owned()),
    };
    let problems: Vec<_> = config.settings.push_templates.iter().filter_map(broken).collect();
    if !problems.is_empty() {
        return problems;
    }
    let Err(error) = PushTemplates::new(&config.settings.push_templates) else { return Vec::new() };
    let (key, rule) = error.split_once(": ").unwrap_or(("", &error));
    let (name, member) = key.split_once('.').unwrap_or((key, ""));
    problem(name, &format!(".{member}"), rule.to_owned()).into_iter().collect()
}
