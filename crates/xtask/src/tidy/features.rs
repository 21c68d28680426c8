//! Rules on the features of `core`: each is a folder, in the order, and proved by a conversation.

use super::Finding;
use super::place::code;
use crate::tree::Tree;
use std::collections::BTreeSet;

/// Features without a conversation of their own, and why.
const PASSIVE: &[(&str, &str)] = &[
    ("json", "only declares a namespace; the payload is in the conversations of notifications and topics"),
    ("receipts", "only declares a namespace; what a receipt does is in the conversation of notifications"),
];

/// Every feature but those has a conversation that shows that nothing of it happens when it is disabled.
pub(super) fn disabled(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in tree.folders(FOLDER) {
        let path = format!("{FOLDER}{name}/disabled.chat");
        let shown = tree.text(&path).is_some_and(|text| text.contains(&format!("features.disabled {name}")));
        if !shown && !DECLARATIONS.contains(&name) {
            findings.push(Finding::new(
                &path,
                0,
                "no conversation shows that nothing happens when it is disabled",
            ));
        }
    }
    findings
}

/// Features are leaves: nobody names one but the order, and none names another.
pub(super) fn leaves(tree: &Tree) -> Vec<Finding> {
    let names = tree.folders(FOLDER);
    let mut findings = Vec::new();
    for (path, text) in tree.under(CORE).filter(|(path, _)| path.ends_with(".rs")) {
        if path == ORDER {
            continue;
        }
        let own = path.strip_prefix(FOLDER).and_then(|rest| rest.split('/').next());
        for line in code(path, text).filter(|line| !line.in_test) {
            let named = names.iter().find(|name| Some(**name) != own && names_feature(line.text, name));
            if let Some(name) = named {
                findings.push(Finding::new(
                    path,
                    line.number,
                    format!("names the feature `{name}`: join it by a hook"),
                ));
            }
        }
    }
    findings
}

fn names_feature(line: &str, name: &str) -> bool {
    line.contains(&format!("features::{name}")) || (line.contains("features::{") && line.contains(name))
}

/// What a feature keeps is opened by that feature alone: nobody else names its types, or a field of its name.
pub(super) fn own_state(tree: &Tree) -> Vec<Finding> {
    let names: BTreeSet<&str> = tree.under(STATE).filter_map(|(path, _)| owner(path, STATE)).collect();
    let mut findings = Vec::new();
    for (path, text) in tree.under(CORE).filter(|(path, _)| path.ends_with(".rs")) {
        let own = owner(path, FOLDER).or(owner(path, STATE));
        // A record is there what the store has of an account, and not yet what features know by it.
        let reads_records = READ_RECORDS.iter().any(|folder| path.starts_with(folder));
        let holders = if reads_records { &HOLDERS[..HOLDERS.len() - 1] } else { HOLDERS };
        for line in code(path, text).filter(|line| !line.in_test) {
            let mut others = names.iter().filter(|name| Some(**name) != own);
            if let Some(name) =
                others.find(|name| holders.iter().any(|holder| opens(line.text, holder, name)))
            {
                let what = format!("opens what the feature `{name}` keeps: join it by a hook");
                findings.push(Finding::new(path, line.number, what));
            }
        }
    }
    findings
}

/// The feature to which a file under `folder` belongs.
fn owner<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    let name = path.strip_prefix(folder)?.split('/').next()?.trim_end_matches(".rs");
    (name != "mod").then_some(name)
}

/// Whether a line names `name` right behind `holder`, and no longer word.
fn opens(line: &str, holder: &str, name: &str) -> bool {
    line.match_indices(holder).any(|(at, _)| {
        let behind = line[at + holder.len()..].strip_prefix(name);
        behind.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    })
}

/// Every feature's folder has a `.chat`, or a reason to have none.
pub(super) fn conversations(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in tree.folders(FOLDER) {
        let folder = format!("{FOLDER}{name}/");
        let converses = tree.under(&folder).any(|(path, _)| path.ends_with(".chat"));
        let passive = PASSIVE.iter().any(|(passive, _)| *passive == name);
        let what = match (converses, passive) {
            (false, false) => "no .chat: no conversation proves this feature",
            (true, true) => "has a .chat, and is listed as passive in crates/xtask/src/tidy/features.rs",
            _ => continue,
        };
        findings.push(Finding::new(&folder, 0, what));
    }
    findings
}

/// Every feature is in the order, once.
pub(super) fn order(tree: &Tree) -> Vec<Finding> {
    let order = tree.text(ORDER).unwrap_or_default();
    let mut findings = Vec::new();
    for name in tree.folders(FOLDER) {
        let entries = order.lines().filter(|line| line.trim() == format!("&{name}::FEATURE,")).count();
        if entries != 1 {
            findings.push(Finding::new(
                ORDER,
                0,
                format!("`&{name}::FEATURE` stands {entries} times in ORDER"),
            ));
        }
    }
    findings
}

/// Features that only declare a namespace.
const DECLARATIONS: &[&str] = &["json", "receipts"];

const CORE: &str = "crates/core/src/";
const FOLDER: &str = "crates/core/src/features/";
const ORDER: &str = "crates/core/src/features/mod.rs";
/// What features keep.
const STATE: &str = "crates/core/src/feature_state/";
/// What stands before the name of what a feature keeps: of a session, of a shard, in a path, and of an account.
const HOLDERS: &[&str] = &[".state.", ".features.", "feature_state::", "record."];
const READ_RECORDS: &[&str] = &["crates/core/src/ports/", "crates/core/src/sim/"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_without_a_word_is_found() {
        let mut tree = Tree::default();
        tree.add("crates/core/src/features/ping/mod.rs", "");
        tree.add("crates/core/src/features/json/mod.rs", "");
        tree.add(ORDER, "    &ping::FEATURE,\n    &json::FEATURE,\n");
        assert_eq!(conversations(&tree).len(), 1);
        assert_eq!(order(&tree), []);
        tree.add("crates/core/src/features/ping/ping.chat", "");
        assert_eq!(conversations(&tree), []);
        tree.add("crates/core/src/features/csi/csi.chat", "");
        assert_eq!(order(&tree).len(), 1);
    }

    #[test]
    fn who_opens_what_another_feature_keeps_is_found() {
        let found = |path: &str, text: &str| {
            let mut tree = Tree::default();
            tree.add("crates/core/src/feature_state/mod.rs", "pub mod pep;\npub mod ping;\n");
            tree.add("crates/core/src/feature_state/pep/account.rs", "");
            tree.add("crates/core/src/feature_state/ping.rs", "");
            tree.add(&format!("crates/core/src/{path}"), text);
            own_state(&tree).len()
        };
        let own = "use crate::feature_state::pep::Nodes;\nfn f() { home.record.pep.iter() }\n";
        assert_eq!(found("features/pep/mod.rs", own), 0);
        assert_eq!(found("features/csi/mod.rs", own), 2);
        assert_eq!(found("session/bound.rs", "fn f() { self.state.ping.asked }\n"), 1);
        assert_eq!(found("feature_state/pep/shard.rs", "use crate::feature_state::ping::State;\n"), 1);
        assert_eq!(found("session/bound.rs", "fn f() { cx.features.pinged() }\n"), 0, "another word");
        assert_eq!(found("ports/store/answer.rs", "fn f() { record.pep }\n"), 0, "what the store has");
    }
}
