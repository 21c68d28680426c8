//! As much of Markdown as the rules need: prose without its code blocks, code spans, links, headings and tables.

/// The lines that are not in a fenced block, with their numbers counted from 1.
pub(super) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence: Option<&str> = None;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (None, None) => return Some((at + 1, line)),
            (None, opens) => fence = opens,
            (Some(open), Some(mark)) if open == mark => fence = None,
            (Some(_), _) => {}
        }
        None
    })
}

/// The code spans of a line: what is between backticks.
pub(super) fn code_spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// A line without its code spans.
pub(super) fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("``")
}

/// The targets of the links and images of a line: `[text](target)` and `[name]: target`.
pub(super) fn link_targets(line: &str) -> Vec<String> {
    let line = without_code(line);
    let inline = line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    let mut targets: Vec<String> = inline.map(str::to_owned).collect();
    if line.starts_with('[')
        && let Some((_, target)) = line.split_once("]: ")
    {
        targets.extend(target.split(' ').next().map(str::to_owned));
    }
    targets
}

/// The anchors of a document's headings, as GitHub makes them.
pub(super) fn anchors(text: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    let headings = prose(text).filter_map(|(_, line)| {
        let title = line.trim_start_matches('#');
        (title.len() < line.len()).then(|| title.strip_prefix(' ')).flatten()
    });
    for title in headings {
        let anchor = anchor(title.trim());
        let same = anchors.iter().filter(|a| **a == anchor || numbered(a, &anchor)).count();
        anchors.push(if same == 0 { anchor } else { format!("{anchor}-{same}") });
    }
    anchors
}

fn numbered(anchor: &str, base: &str) -> bool {
    let number = anchor.strip_prefix(base).and_then(|rest| rest.strip_prefix('-'));
    number.is_some_and(|number| number.parse::<usize>().is_ok())
}

fn anchor(title: &str) -> String {
    // Of a link only the text counts.
    let text: String = title
        .split("](")
        .enumerate()
        .map(|(i, part)| if i == 0 { part } else { after_target(part) })
        .collect();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn after_target(part: &str) -> &str {
    part.split_once(')').map_or("", |(_, rest)| rest)
}

/// The rows of all tables that have a column of this name: the row's line and what the column says.
pub(super) fn column<'a>(text: &'a str, name: &str) -> Vec<(usize, &'a str)> {
    let mut wanted = None;
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let Some(cells) = cells(line) else {
            wanted = None;
            continue;
        };
        match wanted {
            None => wanted = Some(cells.iter().position(|cell| *cell == name)),
            Some(Some(at)) if !line.trim_start_matches(['|', ' ']).starts_with("--") => {
                found.push((number, cells.get(at).copied().unwrap_or_default()));
            }
            Some(_) => {}
        }
    }
    found
}

fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(str::trim).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_blocks_are_no_prose() {
        let text = "one\n```console\n[a](b)\n~~~\n```\ntwo\n~~~\nx\n~~~\n";
        assert_eq!(prose(text).collect::<Vec<_>>(), [(1, "one"), (6, "two")]);
    }

    #[test]
    fn spans_and_links() {
        let line = "see [`a/b.rs`](../a/b.rs#L1 \"title\"), ![x](y.svg) and `[c](d)`";
        assert_eq!(code_spans(line).collect::<Vec<_>>(), ["a/b.rs", "[c](d)"]);
        assert_eq!(link_targets(line), ["../a/b.rs#L1", "y.svg"]);
        assert_eq!(link_targets("[name]: other.md"), ["other.md"]);
    }

    #[test]
    fn anchors_are_those_of_the_page() {
        let text = "# Limits of the *system*\n## `carillon.toml`: why?\n## [Links](a.md) too\n### Twice\n### Twice\n#no\n";
        assert_eq!(
            anchors(text),
            ["limits-of-the-system", "carillontoml-why", "links-too", "twice", "twice-1"]
        );
    }

    #[test]
    fn a_column_of_any_table() {
        let text = "| what | guard |\n|---|---|\n| a | b |\n| c |\n\n| guard |\n|---|\n| d |\n\n| other |\n|--|\n| e |\n";
        assert_eq!(column(text, "guard"), [(3, "b"), (4, ""), (8, "d")]);
    }
}
