//! What the README says is not there is not there.

use super::super::Finding;
use crate::tree::Tree;

/// Each item of the section of the README on what the server does not do has a marker that no reader sees: `<!-- until PATH says TEXT -->`, and
/// once the file has the text, the item is not true any more; or `<!-- while PATH says TEXT -->`, of a limit that another page tells: once the file
/// has the text no more, it is not.
pub(crate) fn absent(tree: &Tree) -> Vec<Finding> {
    let text = tree.text(README).unwrap_or_default();
    let lines = text.lines().enumerate().skip_while(|(_, line)| !line.starts_with(SECTION));
    let section = lines.skip(1).take_while(|(_, line)| !line.starts_with("## "));
    let mut items: Vec<(usize, String)> = Vec::new();
    for (at, line) in section {
        match (line.strip_prefix("- "), items.last_mut()) {
            (Some(item), _) => items.push((at + 1, item.to_owned())),
            (None, Some((_, item))) if line.starts_with("  ") => *item += line,
            _ => {}
        }
    }
    if items.is_empty() {
        return vec![Finding::new(README, 0, format!("no section `{SECTION}` with a list"))];
    }
    items
        .iter()
        .flat_map(|(line, item)| {
            faults(tree, item).into_iter().map(|fault| Finding::new(README, *line, fault))
        })
        .collect()
}

fn faults(tree: &Tree, item: &str) -> Vec<String> {
    let markers: Vec<Marker<'_>> = item
        .split("<!-- ")
        .skip(1)
        .filter_map(|rest| {
            let (text, _) = rest.split_once(" -->")?;
            let until = text.strip_prefix("until ").map(Marker::Until);
            until.or_else(|| text.strip_prefix("while ").map(Marker::While))
        })
        .collect();
    if markers.is_empty() {
        return vec![
            "has no marker `<!-- until PATH says TEXT -->` or `<!-- while PATH says TEXT -->`".to_owned(),
        ];
    }
    markers.into_iter().filter_map(|marker| fault(tree, marker)).collect()
}

/// How long an item is true.
#[derive(Clone, Copy)]
enum Marker<'a> {
    Until(&'a str),
    While(&'a str),
}

fn fault(tree: &Tree, marker: Marker<'_>) -> Option<String> {
    let (Marker::Until(said) | Marker::While(said)) = marker;
    let Some((path, text)) = said.split_once(" says ") else {
        return Some(format!("`{said}` is not PATH says TEXT"));
    };
    let Some(file) = tree.text(path) else { return Some(format!("there is no {path}")) };
    match (marker, file.contains(text)) {
        (Marker::Until(_), true) => Some(format!("{path} says {text}: it is there now")),
        (Marker::While(_), false) => Some(format!("{path} does not say {text} any more")),
        (Marker::Until(_), false) | (Marker::While(_), true) => None,
    }
}

const README: &str = "README.md";
const SECTION: &str = "## What it does not do";

#[cfg(test)]
mod tests {
    use super::*;

    fn said(readme: &str) -> Vec<String> {
        let mut tree = Tree::default();
        tree.add("docs/coverage.md", "| [XEP-0045](x) Multi-User Chat |\n");
        tree.add(README, readme);
        absent(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_there_now_is_found() {
        let list = "## What it does not do yet\n\n- Rooms.\n  <!-- until docs/coverage.md says XEP-0045 -->\n\
                    - Files. <!-- until docs/coverage.md says XEP-0363 -->\n\n## Next\n\n- Anything.\n";
        assert_eq!(said(list), ["README.md:3: docs/coverage.md says XEP-0045: it is there now"]);
        let list = "## What it does not do yet\n\n- Rooms.\n- Files. <!-- until docs/x.md says a -->\n";
        assert_eq!(said(list).len(), 2);
        assert_eq!(said("# Carillon\n").len(), 1);
        let list = "## What it does not do yet\n\n- Rooms of a kind. <!-- while docs/coverage.md says Multi-User Chat -->\n\
                    - Files. <!-- while docs/coverage.md says no files -->\n- None. <!-- whenever -->\n";
        let expected = [
            "README.md:4: docs/coverage.md does not say no files any more",
            "README.md:5: has no marker `<!-- until PATH says TEXT -->` or `<!-- while PATH says TEXT -->`",
        ];
        assert_eq!(said(list), expected);
    }
}
