//! The layers of `core`: what may import what.

use super::Finding;
use super::place::code;
use crate::tree::Tree;

/// From the ground up. A file may import what is in its own place and what is in lower layers: not what is above it, and not what
/// is beside it in another place of the same layer. A path that ends in `*` stands for one folder of that level.
pub const LAYERS: &[&[&str]] = &[
    &["model", "error", "random"],
    &["sasl", "event"],
    &["settings", "ports"],
    &["command", "connection"],
    &["message"],
    &["effect"],
    &["light"],
    &["shard"],
    &["features/*/state", "features/state", "features/stream_management/queue"],
    &["session"],
    &["topic", "route"],
    &["features/*"],
    &["pipeline"],
    &["machine"],
    &["sim"],
];

const CORE: &str = "crates/core/src/";

/// Where a module stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place<'a> {
    layer: usize,
    name: &'a str,
}

/// No import goes upward, or sideways.
pub fn downward(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.under(CORE).filter(|(path, _)| path.ends_with(".rs")) {
        let module = module_of(path);
        // The root lists the modules, and names what the program is explained by.
        if module == "lib" || module == "features" {
            continue;
        }
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

/// Whether two modules of one place are in the same folder: for `features/*` each folder is a place of its own.
fn same_folder(a: &str, b: &str) -> bool {
    let feature = |module: &str| {
        module.strip_prefix("features/").and_then(|rest| rest.split('/').next()).map(str::to_owned)
    };
    feature(a) == feature(b)
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
        assert_eq!(findings(session, "use crate::features::state::PerSession;\n"), 0);
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
            findings("crates/core/src/features/ping/state.rs", "use crate::session::BoundSession;\n"),
            1
        );
    }

    #[test]
    fn every_module_has_a_layer() {
        assert_eq!(findings("crates/core/src/archive/mod.rs", ""), 1);
        assert_eq!(findings("crates/core/src/lib.rs", "pub mod machine;\n"), 0);
    }
}
