//! The length of functions.

use super::Finding;
use crate::tree::Tree;

/// A function over 70 lines does more than one thing. Tests are no exception: whoever reads a test that failed wants to see
/// what it does.
pub(super) fn short_functions(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.iter().filter(|(path, _)| path.ends_with(".rs")) {
        let long = functions(text).filter(|function| function.lines > LINES_MAX);
        findings.extend(long.map(|Function { name, number, lines }| {
            Finding::new(path, number, format!("`{name}` has {lines} lines; {LINES_MAX} is the most"))
        }));
    }
    findings
}

/// A function with a body.
struct Function<'a> {
    name: &'a str,
    /// Its first line, counted from 1.
    number: usize,
    /// From that line to its closing brace.
    lines: usize,
}

/// The functions of a file as rustfmt lays them out: a body ends with the first brace that stands as far left as its `fn`.
fn functions(text: &str) -> impl Iterator<Item = Function<'_>> {
    let lines: Vec<&str> = text.lines().collect();
    let found: Vec<_> = (0..lines.len()).filter_map(|at| function(&lines, at)).collect();
    found.into_iter()
}

fn function<'a>(lines: &[&'a str], at: usize) -> Option<Function<'a>> {
    let code = lines[at].trim_start();
    let indent = lines[at].len() - code.len();
    let name = name(code)?;
    let length = if code.ends_with('}') || code.ends_with(';') {
        1
    } else {
        // A method that a trait only declares ends with a semicolon, before any brace.
        let ends = |line: &&str| {
            let inner = line.trim_start();
            line.len() - inner.len() == indent && (inner == "}" || inner.ends_with(';'))
        };
        2 + lines[at + 1..].iter().position(ends)?
    };
    Some(Function { name, number: at + 1, lines: length })
}

/// The name of the function that a line begins.
fn name(code: &str) -> Option<&str> {
    let mut words = code.split(' ');
    let is_qualifier = |word: &str| {
        word.starts_with("pub")
            || matches!(word, "const" | "async" | "unsafe" | "extern" | "default" | "in")
            || word.starts_with('"')
            || word.ends_with(')') && !word.contains('(')
    };
    let mut word = words.next()?;
    while word != "fn" {
        if !is_qualifier(word) {
            return None;
        }
        word = words.next()?;
    }
    words.next()?.split(['(', '<']).next()
}

const LINES_MAX: usize = 70;

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, usize, usize)> {
        functions(text).map(|f| (f.name.to_owned(), f.number, f.lines)).collect()
    }

    #[test]
    fn a_function_is_as_long_as_its_lines() {
        let text = "fn one() {}\n\
                    \n\
                    impl A {\n\
                    \x20   pub(crate) async fn two<'a>(\n\
                    \x20       &'a self,\n\
                    \x20   ) -> u8 {\n\
                    \x20       if a {\n\
                    \x20       }\n\
                    \x20   }\n\
                    }\n\
                    \n\
                    trait B {\n\
                    \x20   fn three(&self);\n\
                    \x20   fn four(\n\
                    \x20       &self,\n\
                    \x20   );\n\
                    \x20   unsafe extern \"C\" fn five() {\n\
                    \x20   }\n\
                    }\n\
                    // fn no() {\n\
                    let fn_ = 1;\n";
        let expected = [("one", 1, 1), ("two", 4, 6), ("three", 13, 1), ("four", 14, 3), ("five", 17, 2)];
        assert_eq!(found(text), expected.map(|(name, number, lines)| (name.to_owned(), number, lines)));
    }

    #[test]
    fn long_functions_are_found_in_tests_too() {
        let function = |lines: usize| format!("fn long() {{\n{}}}\n", "    a();\n".repeat(lines - 2));
        for path in ["crates/wire/src/a.rs", "crates/wire/tests/a.rs"] {
            let rule = |lines| {
                let mut tree = Tree::default();
                tree.add(path, &function(lines));
                short_functions(&tree).len()
            };
            assert_eq!((rule(70), rule(71)), (0, 1));
        }
    }
}
