//! Rules on the features of `core`: each is a folder, in the order, and proved by a conversation.

use super::Finding;
use crate::tree::Tree;

/// Features without a conversation of their own, and why.
const PASSIVE: &[(&str, &str)] = &[
    ("json", "only declares a namespace; the payload is in the conversations of notifications and topics"),
    ("receipts", "only declares a namespace; what a receipt does is in the conversation of notifications"),
    ("stanza_ids", "every message of every conversation carries one"),
    ("stream_limits", "every conversation of the session shows the limits among the stream features"),
];

/// Every feature's folder has a `.chat`, or a reason to have none.
pub fn conversations(tree: &Tree) -> Vec<Finding> {
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
pub fn order(tree: &Tree) -> Vec<Finding> {
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

const FOLDER: &str = "crates/core/src/features/";
const ORDER: &str = "crates/core/src/pipeline.rs";

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
