//! `docs/coverage.md`: which specifications are followed, how far, and which feature does it. Made of what the code itself
//! declares, so that it cannot say what is not so.

mod layers;

use carillon_core::pipeline::ORDER;
use carillon_core::session::hook::Feature;
use layers::SPECS;
use std::fmt::Write;

/// A row of the first table.
struct Row<'a> {
    id: &'a str,
    title: &'a str,
    version: &'a str,
    place: String,
    coverage: &'a str,
}

/// The whole document.
pub(crate) fn document() -> String {
    let mut out = String::from(PREFACE);
    out += "\n## By specification\n\n";
    out += "| specification | version | where | what is there, and what is not |\n|---|---|---|---|\n";
    let mut rows = rows();
    rows.sort_by_key(|row| key(row.id));
    for Row { id, title, version, place, coverage } in &rows {
        line(&mut out, &[&format!("{} {title}", link(id)), version, place, coverage]);
    }
    out += "\n## By feature\n\n";
    out += "In the order in which they see a stanza. Each can be switched off by its name in `features.disabled`.\n\n";
    out += "| feature | what it does | follows |\n|---|---|---|\n";
    for feature in ORDER {
        let specs: Vec<String> = feature.specs.iter().map(|spec| link(spec.id)).collect();
        line(&mut out, &[&format!("`{}`", feature.name), feature.about, &specs.join(", ")]);
    }
    out
}

fn rows() -> Vec<Row<'static>> {
    let layers = SPECS.iter().map(|spec| Row {
        id: spec.id,
        title: spec.title,
        version: spec.version,
        place: spec.place.to_owned(),
        coverage: spec.coverage,
    });
    layers.chain(ORDER.iter().flat_map(|feature| rows_of(feature))).collect()
}

fn rows_of(feature: &'static Feature) -> impl Iterator<Item = Row<'static>> {
    feature.specs.iter().map(|spec| Row {
        id: spec.id,
        title: spec.title,
        version: spec.version,
        place: format!("`{}`", feature.name),
        coverage: spec.coverage,
    })
}

/// RFCs first, then XEPs, each by number, then our own.
fn key(id: &str) -> (u8, u32, &str) {
    let number = |text: &str| text.parse().unwrap_or(u32::MAX);
    match (id.strip_prefix("RFC "), id.strip_prefix("XEP-")) {
        (Some(rfc), _) => (0, number(rfc), ""),
        (_, Some(xep)) => (1, number(xep), ""),
        _ => (2, 0, id),
    }
}

fn link(id: &str) -> String {
    match (id.strip_prefix("RFC "), id.strip_prefix("XEP-")) {
        (Some(rfc), _) => format!("[{id}](https://www.rfc-editor.org/rfc/rfc{rfc})"),
        (_, Some(xep)) => format!("[{id}](https://xmpp.org/extensions/xep-{xep}.html)"),
        _ => format!("`{id}`"),
    }
}

fn line(out: &mut String, cells: &[&str]) {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    writeln!(out, "| {} |", cells.join(" | ")).expect("a string takes everything");
}

const PREFACE: &str = "\
<!-- Made by `cargo run -p xtask -- coverage > docs/coverage.md`; the gate compares. -->

# Coverage

What Carillon follows and how far. The tables are made of what the code declares: a feature's own `specs`, and for what is
below the features `crates/xtask/src/coverage/layers.rs`. What the integration tests of others say of it: [smack.md](smack.md).
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_declaration_is_in_the_document() {
        let document = document();
        for row in rows() {
            assert!(!row.coverage.is_empty() && !row.title.is_empty(), "{}", row.id);
            assert!(document.contains(&format!("{} {}", link(row.id), row.title)), "{}", row.id);
        }
        for feature in ORDER {
            assert!(document.contains(&format!("| `{}` | {}", feature.name, feature.about)));
        }
    }

    #[test]
    fn a_layer_names_each_specification_once_and_xeps_by_version() {
        for (i, spec) in SPECS.iter().enumerate() {
            assert!(SPECS[..i].iter().all(|other| other.id != spec.id), "{} twice", spec.id);
            assert_eq!(spec.id.starts_with("XEP-"), !spec.version.is_empty(), "{}", spec.id);
        }
    }

    #[test]
    fn rfcs_come_first_each_by_number() {
        let mut ids = ["urn:x:0", "XEP-0030", "RFC 7395", "XEP-0004", "RFC 6120"];
        ids.sort_by_key(|id| key(id));
        assert_eq!(ids, ["RFC 6120", "RFC 7395", "XEP-0004", "XEP-0030", "urn:x:0"]);
    }
}
