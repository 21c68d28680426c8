//! Rules on the features of `core`: each is a folder, in the order, and proved by a conversation.

use super::Finding;
use super::place::code;
use crate::tree::Tree;

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

/// Features are leaves: nobody names one but the order and the list of their states, and none names another.
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
}
