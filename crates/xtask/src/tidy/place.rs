//! Where a line stands: in a test or not, code or comment.

/// The lines of a file that are code, with their numbers and whether they belong to tests.
pub(super) fn code<'a>(path: &'a str, text: &'a str) -> impl Iterator<Item = Line<'a>> {
    let whole = is_test_file(path);
    let comment = if path.ends_with(".py") { "#" } else { "//" };
    let mut inline = Inline::Outside;
    text.lines().enumerate().filter_map(move |(i, line)| {
        inline = inline.next(line);
        let in_test = whole || matches!(inline, Inline::Inside);
        let is_code = !line.trim_start().starts_with(comment);
        is_code.then_some(Line { number: i + 1, text: line, in_test })
    })
}

/// A line of code.
pub(super) struct Line<'a> {
    /// Counted from 1.
    pub number: usize,
    /// All of it.
    pub text: &'a str,
    /// Whether it runs only in tests.
    pub in_test: bool,
}

fn is_test_file(path: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    folder.split('/').any(|part| part == "tests" || part.ends_with("_tests") || part == "conformance")
        || name == "tests.rs"
        || name.ends_with("_tests.rs")
}

/// Whether the walk through a Rust file is in its inline tests. rustfmt closes a module of the top level with a brace at
/// the very left.
#[derive(Clone, Copy)]
enum Inline {
    Outside,
    Announced,
    Inside,
}

impl Inline {
    fn next(self, line: &str) -> Inline {
        match self {
            Inline::Outside if line == "#[cfg(test)]" => Inline::Announced,
            Inline::Announced if line.starts_with("mod ") && line.ends_with('{') => Inline::Inside,
            Inline::Announced if line.starts_with("#[") => Inline::Announced,
            Inline::Inside if line != "}" => Inline::Inside,
            _ => Inline::Outside,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_tests_from_the_rest() {
        let text = "fn a() {}\n// no code\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n";
        let seen: Vec<_> = code("crates/x/src/a.rs", text).map(|line| (line.number, line.in_test)).collect();
        assert_eq!(seen, [(1, false), (3, false), (4, true), (5, true), (6, false), (7, false)]);
        assert!(code("crates/x/tests/all.rs", text).all(|line| line.in_test));
        assert!(code("crates/x/src/jid/tests.rs", text).all(|line| line.in_test));
        assert!(code("crates/x/src/light_tests/rig.rs", text).all(|line| line.in_test));
        assert!(!code("crates/x/src/attests/mod.rs", text).all(|line| line.in_test));
    }
}
