//! Links between documents.

use super::super::Finding;
use super::markdown;
use crate::tree::Tree;

/// A relative link leads to a file or a folder of the repository, and its anchor to a heading of that document.
pub(crate) fn links(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.iter().filter(|(path, _)| path.ends_with(".md")) {
        for (number, line) in markdown::prose(text) {
            let targets = markdown::link_targets(line).into_iter().filter(|target| !is_elsewhere(target));
            let faults = targets.filter_map(|target| fault(tree, path, &target));
            findings.extend(faults.map(|fault| Finding::new(path, number, fault)));
        }
    }
    findings
}

fn is_elsewhere(target: &str) -> bool {
    target.contains("://") || target.starts_with("mailto:")
}

/// Why the link leads nowhere; none if it leads somewhere.
fn fault(tree: &Tree, from: &str, target: &str) -> Option<String> {
    let (file, anchor) = target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
    let to = if file.is_empty() { Some(from.to_owned()) } else { resolve(from, file) };
    let Some(to) = to.filter(|to| to.is_empty() || tree.has(to)) else {
        return Some(format!("the link to `{target}` leads to no file"));
    };
    let (anchor, text) = (anchor?, tree.text(&to).filter(|_| to.ends_with(".md"))?);
    let known = markdown::anchors(text).iter().any(|known| known == anchor);
    (!known).then(|| format!("the link to `{target}` leads to no heading of {to}"))
}

/// The path from the root of what `file` names in the document `from`; none if it is outside.
fn resolve(from: &str, file: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in file.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_somewhere() {
        let mut tree = Tree::default();
        tree.add("README.md", "# Top\n## A part\n");
        tree.add("docs/book/a.md", "# Here\n");
        tree.add("docs/b.rs", "");
        for (target, leads) in [
            ("../../README.md", true),
            ("../../README.md#a-part", true),
            ("../../README.md#another", false),
            ("../b.rs", true),
            ("../b.rs#L7", true),
            ("../c.rs", false),
            ("../../docs", true),
            ("#here", true),
            ("#there", false),
            ("../../../README.md", false),
        ] {
            assert_eq!(fault(&tree, "docs/book/a.md", target).is_none(), leads, "{target}");
        }
    }

    #[test]
    fn other_places_and_examples_are_passed_over() {
        let mut tree = Tree::default();
        tree.add("a.md", "[x](https://example.org/y) `[x](y)`\n```\n[x](y)\n```\n[x](y)\n");
        let said: Vec<String> = links(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(said, ["a.md:5: the link to `y` leads to no file"]);
    }
}
