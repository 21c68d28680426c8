//! Rules on the manifests: which crate may depend on which, and that all share the lints.

use super::Finding;
use crate::tree::Tree;
use toml::Table;

/// A crate, what it may depend on, and what its tests may use besides. The arrows of the design, in one table.
struct Allowed {
    name: &'static str,
    normal: &'static [&'static str],
    dev: &'static [&'static str],
}

const ALLOWED: &[Allowed] = &[
    Allowed { name: "wire", normal: &[], dev: &[] },
    // Its conversations run against a real store; what a login costs is counted with a real client.
    Allowed { name: "core", normal: &["wire"], dev: &["backend", "load", "modules"] },
    Allowed { name: "backend", normal: &["wire", "core"], dev: &[] },
    // What runs extensions; the core knows it by a port.
    Allowed { name: "modules", normal: &["wire", "core"], dev: &[] },
    Allowed { name: "server", normal: &["wire", "core"], dev: &["backend", "load"] },
    Allowed { name: "http", normal: &["wire", "core", "server"], dev: &["backend", "load"] },
    // Shares nothing with the server but the wire, or it would inherit its bugs.
    Allowed { name: "load", normal: &["wire"], dev: &[] },
    // Decides how much capacity there is to be; what it measures and commands is the binary's.
    Allowed { name: "scale", normal: &[], dev: &[] },
    Allowed {
        name: "carillon",
        normal: &["wire", "core", "backend", "modules", "server", "http", "load", "scale"],
        dev: &["wire", "core", "backend", "modules", "server", "http", "load", "scale"],
    },
    Allowed { name: "xtask", normal: &["core"], dev: &[] },
];

/// Crates depend in one direction.
pub(super) fn direction(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, path, manifest) in manifests(tree) {
        let Some(allowed) = ALLOWED.iter().find(|allowed| allowed.name == name) else {
            findings.push(Finding::new(
                &path,
                0,
                "a crate that crates/xtask/src/tidy/crates.rs does not know",
            ));
            continue;
        };
        for (kind, table) in tables(&manifest) {
            for own in table.keys().filter_map(|key| own_name(key)) {
                // Tests may ask for a feature of their own crate.
                let in_tests = kind == DEV && (allowed.dev.contains(&own) || own == name);
                let fits = allowed.normal.contains(&own) || in_tests;
                if !fits {
                    findings.push(Finding::new(
                        &path,
                        0,
                        format!("`{name}` must not depend on `{own}` ({kind})"),
                    ));
                }
            }
        }
    }
    findings
}

/// Every crate takes the lints of the workspace.
pub(super) fn lints(tree: &Tree) -> Vec<Finding> {
    let shares = |manifest: &Table| {
        manifest.get("lints").and_then(|lints| lints.get("workspace")).and_then(toml::Value::as_bool)
            == Some(true)
    };
    let alone = manifests(tree).into_iter().filter(|(_, _, manifest)| !shares(manifest));
    alone.map(|(_, path, _)| Finding::new(&path, 0, "no `[lints] workspace = true`")).collect()
}

/// The oldest Rust that the manifest promises is the one that everything is built and tested with.
pub(super) fn oldest_rust(tree: &Tree) -> Vec<Finding> {
    let value = |path: &str, keys: &[&str]| {
        let file = tree.text(path)?.parse::<Table>().ok()?;
        let (first, rest) = keys.split_first()?;
        let found = rest.iter().try_fold(file.get(*first)?, |table, key| table.get(key))?;
        found.as_str().map(str::to_owned)
    };
    let promised = value("Cargo.toml", &["workspace", "package", "rust-version"]);
    let used = value("rust-toolchain.toml", &["toolchain", "channel"]);
    match (promised, used) {
        (Some(promised), Some(used)) if used == promised || used.starts_with(&format!("{promised}.")) => {
            Vec::new()
        }
        (promised, used) => {
            let what = format!("rust-version {promised:?} is not the toolchain that tests it, {used:?}");
            vec![Finding::new("Cargo.toml", 0, what)]
        }
    }
}

/// The crates: folder name, path of the manifest, and what it says. One that cannot be read is cargo's to report.
fn manifests(tree: &Tree) -> Vec<(String, String, Table)> {
    let folders = tree.folders("crates/").into_iter();
    folders
        .filter_map(|name| {
            let path = format!("crates/{name}/Cargo.toml");
            let manifest = tree.text(&path)?.parse::<Table>().ok()?;
            Some((name.to_owned(), path, manifest))
        })
        .collect()
}

/// The tables of dependencies with their kind, those for a target included.
fn tables(manifest: &Table) -> Vec<(&'static str, &Table)> {
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    let targets = targets.into_iter().flat_map(|targets| targets.values().filter_map(toml::Value::as_table));
    let parts = std::iter::once(manifest).chain(targets);
    parts
        .flat_map(|part| {
            let table = |kind: &'static str| {
                part.get(kind).and_then(toml::Value::as_table).map(|table| (kind, table))
            };
            [NORMAL, DEV, BUILD].into_iter().filter_map(table).collect::<Vec<_>>()
        })
        .collect()
}

/// The name of one of our crates in its own folder; none for those of others.
fn own_name(dependency: &str) -> Option<&str> {
    match dependency {
        "carillon" | "xtask" => Some(dependency),
        other => other.strip_prefix("carillon-"),
    }
}

const NORMAL: &str = "dependencies";
const DEV: &str = "dev-dependencies";
const BUILD: &str = "build-dependencies";

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(name: &str, manifest: &str) -> usize {
        let mut tree = Tree::default();
        tree.add(&format!("crates/{name}/Cargo.toml"), manifest);
        direction(&tree).len()
    }

    #[test]
    fn the_oldest_rust_is_the_one_in_use() {
        let rule = |promised: &str, used: &str| {
            let mut tree = Tree::default();
            tree.add("Cargo.toml", &format!("[workspace.package]\nrust-version = \"{promised}\"\n"));
            tree.add("rust-toolchain.toml", &format!("[toolchain]\nchannel = \"{used}\"\n"));
            oldest_rust(&tree).len()
        };
        assert_eq!((rule("1.95", "1.95.0"), rule("1.95", "1.95")), (0, 0));
        assert_eq!((rule("1.9", "1.95.0"), rule("1.95", "1.96.0"), rule("1.95", "stable")), (1, 1, 1));
    }

    #[test]
    fn arrows_point_one_way() {
        assert_eq!(findings("core", "[dependencies]\ncarillon-wire.workspace = true\nserde = \"1\"\n"), 0);
        assert_eq!(findings("core", "[dependencies]\ncarillon-server.workspace = true\n"), 1);
        assert_eq!(findings("core", "[dependencies]\ncarillon-backend.workspace = true\n"), 1);
        assert_eq!(findings("core", "[dev-dependencies]\ncarillon-backend.workspace = true\n"), 0);
        assert_eq!(
            findings("load", "[target.'cfg(unix)'.dependencies]\ncarillon-core.workspace = true\n"),
            1
        );
        assert_eq!(findings("stranger", ""), 1);
    }
}
