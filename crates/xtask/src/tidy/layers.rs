//! The layers of `core`: what may import what.

use super::Finding;
use super::place::code;
use crate::tree::Tree;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// From the ground up. A file may import what is in its own place and what is in lower layers: not what is above it, and not what
/// is beside it in another place of the same layer. A path that ends in `*` stands for one folder of that level.
pub(crate) const LAYERS: &[&[&str]] = &[
    &["form"],
    &["model", "error", "random"],
    &["sasl", "event", "home", "tap"],
    &["settings", "ports"],
    &["cell", "command", "connection"],
    &["message"],
    &["effect"],
    &["light"],
    &["shard"],
    &["feature_state"],
    &["feature_state/*"],
    &["session"],
    &["topic", "room", "route", "game"],
    &["features/*"],
    &["pipeline"],
    &["machine"],
    &["sim"],
];

const CORE: &str = "crates/core/src/";

/// Where a module stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place<'a> {
    layer: usize,
    name: &'a str,
}

/// No import goes upward, or sideways.
pub(crate) fn downward(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in modules(tree) {
        let module = module_of(path);
        let Some(own) = place(&module) else {
            findings.push(Finding::new(path, 0, "is in no layer of crates/xtask/src/tidy/layers.rs"));
            continue;
        };
        for line in code(path, text).filter(|line| !line.in_test) {
            for named in imports(line.text) {
                let Some(other) = place(&named) else { continue };
                let is_own = other.name == own.name && same_folder(&module, &named);
                if !is_own && other.layer >= own.layer {
                    let what = format!("`{module}` imports `{named}`, which is not below it");
                    findings.push(Finding::new(path, line.number, what));
                }
            }
        }
    }
    findings
}

/// The places of core from the top down, and what each imports: a mark right of the diagonal would be an import upward.
pub(crate) fn drawing(tree: &Tree) -> String {
    let mut drawn = BTreeSet::new();
    let mut files = BTreeMap::<Place<'_>, (usize, usize)>::new();
    for (path, text) in modules(tree) {
        let module = module_of(path);
        let Some(own) = place(&module) else { continue };
        let (count, lines) = files.entry(own).or_default();
        (*count, *lines) = (*count + 1, *lines + text.lines().count());
        let code = code(path, text).filter(|line| !line.in_test);
        let named = code.flat_map(|line| imports(line.text)).filter_map(|named| match &*named {
            // All of them.
            "features" => place("features/"),
            named => place(named),
        });
        drawn.extend(named.map(|other| (own, other)));
    }
    // The one that is drawn first is on top.
    let rows: Vec<_> = files.into_iter().rev().collect();
    let mut text = String::new();
    for (number, (own, (count, lines))) in rows.iter().enumerate() {
        let name = format!("{:>2} {}", number + 1, own.name);
        _ = write!(text, "{name:34} {count:>3} files {lines:>5} lines  ");
        for (column, (other, _)) in rows.iter().enumerate() {
            let mark = match drawn.contains(&(*own, *other)) {
                _ if column == number => "\\".to_owned(),
                true => (column + 1).to_string(),
                false => "·".to_owned(),
            };
            _ = write!(text, "{mark:>3}");
        }
        text.push('\n');
    }
    text
}

/// The modules of core, each a path and a text. The root lists them and names what the program is explained by: it is none.
fn modules(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    let rust = tree.under(CORE).filter(|(path, _)| path.ends_with(".rs"));
    rust.filter(|(path, _)| !matches!(&*module_of(path), "lib" | "features"))
}

/// `session/auth/offer` of `crates/core/src/session/auth/offer.rs`.
fn module_of(path: &str) -> String {
    let path = path.trim_start_matches(CORE).trim_end_matches(".rs");
    path.trim_end_matches("/mod").to_owned()
}

/// The modules that a line names by `crate::`, as paths; what the root names again stands for where it is.
fn imports(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    for rest in line.split("crate::").skip(1) {
        let group = rest.strip_prefix('{').map(|rest| rest.split('}').next().unwrap_or_default());
        let names = group.map_or_else(|| vec![rest], |group| group.split(',').map(str::trim).collect());
        found.extend(names.into_iter().map(module_named));
    }
    found.retain(|module| !module.is_empty());
    found
}

fn module_named(path: &str) -> String {
    let name: String = path.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    if let Some((_, module)) = AT_THE_ROOT.iter().find(|(item, _)| *item == name) {
        return (*module).to_owned();
    }
    let path: String =
        path.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_' || *c == ':').collect();
    path.trim_end_matches(':').replace("::", "/")
}

/// What the root of the crate names again.
const AT_THE_ROOT: &[(&str, &str)] = &[
    ("Effect", "effect"),
    ("Effects", "effect"),
    ("ReplyTo", "command"),
    ("Opened", "connection"),
    ("Security", "connection"),
    ("Input", "machine"),
];

fn place(module: &str) -> Option<Place<'static>> {
    let fits = |name: &str| {
        let (mut wanted, mut found) = (name.split('/'), module.split('/'));
        loop {
            match (wanted.next(), found.next()) {
                (None, _) => return true,
                (Some("*"), Some(_)) => {}
                (Some(wanted), Some(found)) if wanted == found => {}
                (Some(_), _) => return false,
            }
        }
    };
    let all = LAYERS
        .iter()
        .enumerate()
        .flat_map(|(layer, names)| names.iter().map(move |name| Place { layer, name }));
    // The longest name is the most exact one.
    all.filter(|place| fits(place.name)).max_by_key(|place| place.name.len())
}

/// Whether two modules of one place are of the same feature: where a path ends in `*`, each is a place of its own.
fn same_folder(a: &str, b: &str) -> bool {
    feature(a) == feature(b)
}

/// The feature that a module is of, or keeps something for.
fn feature(module: &str) -> Option<&str> {
    let rest = module.strip_prefix("features/").or(module.strip_prefix("feature_state/"))?;
    rest.split('/').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> usize {
        let mut tree = Tree::default();
        tree.add(path, text);
        downward(&tree).len()
    }

    #[test]
    fn imports_go_down() {
        let session = "crates/core/src/session/bound.rs";
        assert_eq!(findings(session, "use crate::model::ConnId;\nuse crate::session::Io;\n"), 0);
        assert_eq!(findings(session, "use crate::feature_state::PerSession;\n"), 0);
        assert_eq!(findings(session, "use crate::features::ping;\n"), 1);
        assert_eq!(findings(session, "use crate::{Effect, machine};\n"), 1);
        assert_eq!(findings(session, "fn f() { crate::machine::run() }\n"), 1);
        assert_eq!(findings("crates/core/src/topic/mod.rs", "use crate::route;\n"), 1, "beside it");
    }

    #[test]
    fn features_are_beside_each_other() {
        let ping = "crates/core/src/features/ping/mod.rs";
        assert_eq!(findings(ping, "use crate::features::ping::xml;\nuse crate::session::BoundSession;\n"), 0);
        assert_eq!(findings(ping, "use crate::features::csi;\n"), 1);
        assert_eq!(
            findings("crates/core/src/feature_state/ping.rs", "use crate::session::BoundSession;\n"),
            1
        );
        let pep = "crates/core/src/feature_state/pep/account.rs";
        assert_eq!(findings(pep, "use crate::feature_state::Shared;\nuse crate::model::Node;\n"), 0);
        assert_eq!(findings(pep, "use crate::feature_state::roster::Contacts;\n"), 1);
    }

    #[test]
    fn what_is_imported_is_drawn_below() {
        let mut tree = Tree::default();
        tree.add("crates/core/src/session/bound.rs", "use crate::model::ConnId;\nuse crate::session::Io;\n");
        tree.add("crates/core/src/model/id.rs", "pub struct ConnId;\n");
        let drawing = drawing(&tree);
        let rows: Vec<&str> = drawing.lines().collect();
        assert_eq!(rows.len(), 2, "{drawing}");
        assert!(rows[0].starts_with(" 1 session") && rows[0].ends_with("2 lines    \\  2"), "{drawing}");
        assert!(rows[1].starts_with(" 2 model") && rows[1].ends_with("1 lines    ·  \\"), "{drawing}");
    }

    #[test]
    fn every_module_has_a_layer() {
        assert_eq!(findings("crates/core/src/archive/mod.rs", ""), 1);
        assert_eq!(findings("crates/core/src/lib.rs", "pub mod machine;\n"), 0);
    }
}
