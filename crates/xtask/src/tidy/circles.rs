//! Modules that stand beside each other do not need each other in a circle: who changes one of them would have to know all.

use super::Finding;
use super::place::code;
use crate::tree::Tree;
use std::collections::{BTreeMap, BTreeSet};

/// No circles among the modules of a folder.
pub(super) fn circles(tree: &Tree) -> Vec<Finding> {
    let found = tree.folders("crates/").into_iter().flat_map(|name| of_crate(tree, name));
    found
        .map(|(folder, modules)| {
            let (name, inside) = folder.split_once('/').unwrap_or((folder.as_str(), ""));
            let path = format!("crates/{name}/src/{inside}");
            Finding::new(&path, 0, format!("these need each other in a circle: {}", modules.join(", ")))
        })
        .collect()
}

/// The modules of a crate and what each names: paths as `session/auth`, the root as an empty one.
type Modules = BTreeMap<String, String>;

/// The circles of a crate, each with its folder.
fn of_crate(tree: &Tree, name: &str) -> Vec<(String, Vec<String>)> {
    let source = format!("crates/{name}/src/");
    let mut modules = Modules::new();
    for (path, text) in tree.under(&source).filter(|(path, _)| path.ends_with(".rs")) {
        let code: Vec<&str> = code(path, text).filter(|line| !line.in_test).map(|line| line.text).collect();
        if !code.is_empty() {
            modules.insert(module_of(path.trim_start_matches(&*source)), code.join("\n"));
        }
    }
    let mut needs = BTreeMap::<String, Graph>::new();
    for (module, text) in &modules {
        for named in named(text) {
            let Some(other) = resolve(&modules, module, &named) else { continue };
            let (folder, own, others) = parting(module, &other);
            if let (Some(own), Some(others)) = (own, others) {
                needs.entry(folder).or_default().entry(own).or_default().insert(others);
            }
        }
    }
    let folder_of =
        |folder: &str| if folder.is_empty() { name.to_owned() } else { format!("{name}/{folder}") };
    needs
        .iter()
        .flat_map(|(folder, graph)| {
            circles_of(graph).into_iter().map(move |circle| (folder_of(folder), circle))
        })
        .collect()
}

/// `session/auth` of `session/auth/mod.rs`; nothing of `lib.rs`.
fn module_of(path: &str) -> String {
    let path = path.trim_end_matches(".rs");
    let path = path.strip_suffix("/mod").unwrap_or(path);
    if matches!(path, "lib" | "main" | "mod") { String::new() } else { path.to_owned() }
}

/// The folder in which two modules part, and what each of them is in there.
fn parting(a: &str, b: &str) -> (String, Option<String>, Option<String>) {
    let (a, b): (Vec<&str>, Vec<&str>) = (a.split('/').collect(), b.split('/').collect());
    let common = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let own =
        |parts: &[&str]| parts.get(common).filter(|name| !name.is_empty()).map(|name| (*name).to_owned());
    (a[..common].join("/"), own(&a), own(&b))
}

/// The paths that begin with `crate`, `self` or `super`, those in braces one by one.
fn named(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for start in ["crate", "self", "super"] {
        for (at, _) in text.match_indices(start) {
            let before = text[..at].chars().next_back();
            let is_begin = before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != ':');
            if is_begin && text[at + start.len()..].starts_with("::") {
                paths(&text[at..], &[], &mut found);
            }
        }
    }
    found
}

/// Reads a path, and what stands in braces behind it; how many bytes that were.
fn paths(text: &str, prefix: &[String], found: &mut Vec<Vec<String>>) -> usize {
    let mut path = prefix.to_vec();
    let mut at = 0;
    loop {
        let rest = &text[at..];
        if rest.starts_with('{') {
            return at + braces(rest, &path, found);
        }
        let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        at += name.len();
        if !name.is_empty() {
            path.push(name);
        }
        if !text[at..].starts_with("::") {
            break;
        }
        at += 2;
    }
    found.push(path);
    at
}

/// Reads what stands in braces: paths with commas between them.
fn braces(text: &str, prefix: &[String], found: &mut Vec<Vec<String>>) -> usize {
    let mut at = 1;
    while at < text.len() {
        match text.as_bytes()[at] {
            b'}' => return at + 1,
            c if c.is_ascii_alphanumeric() || c == b'_' => at += paths(&text[at..], prefix, found).max(1),
            _ => at += text[at..].chars().next().map_or(1, char::len_utf8),
        }
    }
    at
}

/// The module that a path leads to, as far as it leads to modules.
fn resolve(modules: &Modules, from: &str, path: &[String]) -> Option<String> {
    let mut at: Vec<&str> = from.split('/').filter(|part| !part.is_empty()).collect();
    let mut names = path.iter().map(String::as_str).peekable();
    match names.next()? {
        "crate" => at.clear(),
        "super" => {
            at.pop();
            while names.next_if_eq(&"super").is_some() {
                at.pop();
            }
        }
        _ => {}
    }
    for name in names {
        at.push(name);
        if !modules.contains_key(&at.join("/")) {
            at.pop();
            break;
        }
    }
    Some(at.join("/"))
}

/// What each module of a folder needs of those beside it.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// The circles: sets of modules each of which leads to all others.
fn circles_of(graph: &Graph) -> Vec<Vec<String>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|name| (name.as_str(), reached(graph, name))).collect();
    let mut circles = BTreeSet::new();
    for (name, all) in &reach {
        let is_mutual = |other: &&&str| reach.get(**other).is_some_and(|back| back.contains(name));
        let circle: Vec<String> = all.iter().filter(is_mutual).map(|other| (*other).to_owned()).collect();
        if circle.len() > 1 {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

/// Where one leads to, over any number of others.
fn reached<'a>(graph: &'a Graph, from: &str) -> BTreeSet<&'a str> {
    let (mut all, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(name) = next.pop() {
        for other in graph.get(name).into_iter().flatten() {
            if all.insert(other.as_str()) {
                next.push(other);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<(String, Vec<String>)> {
        let mut tree = Tree::default();
        files.iter().for_each(|(path, text)| tree.add(&format!("crates/x/src/{path}"), text));
        of_crate(&tree, "x")
    }

    #[test]
    fn a_circle_is_found_whatever_way_it_is_written() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\nmod c;\n"),
            ("a.rs", "use crate::{\n    b::{Thing, other},\n};\n"),
            ("b/mod.rs", "mod inner;\n"),
            ("b/inner.rs", "fn f() { super::super::c::run() }\n"),
            ("c.rs", "use super::a;\n"),
        ];
        assert_eq!(found(&files), [("x".to_owned(), ["a", "b", "c"].map(str::to_owned).to_vec())]);
    }

    #[test]
    fn what_goes_one_way_or_is_in_tests_is_none() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\n"),
            ("a.rs", "use crate::b::Thing;\n"),
            // A module and what is inside it are no circle, nor is the root.
            ("b/mod.rs", "use inner::one;\nuse crate::Root;\n"),
            ("b/inner.rs", "use super::Thing;\n"),
            ("b/tests.rs", "use crate::a;\n"),
        ];
        assert_eq!(found(&files), []);
    }
}
