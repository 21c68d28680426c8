//! The rules of the code that neither the compiler nor clippy checks, each a plain function of the tree.

mod circles;
mod crates;
mod documents;
mod features;
mod functions;
pub(crate) mod layers;
mod layout;
mod lines;
mod place;

use crate::tree::Tree;
use std::fmt;

/// A rule: its name, as documents write it, and what of a tree breaks it.
struct Rule {
    name: &'static str,
    check: fn(&Tree) -> Vec<Finding>,
}

macro_rules! rules {
    ($($module:ident::$rule:ident),+ $(,)?) => {
        &[$(Rule { name: concat!(stringify!($module), "::", stringify!($rule)), check: $module::$rule }),+]
    };
}

/// All rules.
const RULES: &[Rule] = rules![
    lines::short_files,
    functions::short_functions,
    lines::reasons,
    lines::no_sleep_in_tests,
    lines::bounded_channels,
    lines::pure_core,
    lines::places,
    lines::no_xml_by_hand,
    lines::no_waiting_in_shards,
    lines::one_opens_backends,
    features::conversations,
    features::order,
    features::disabled,
    features::leaves,
    features::own_state,
    layers::downward,
    circles::circles,
    layout::folders,
    crates::direction,
    crates::lints,
    crates::oldest_rust,
    documents::guards,
    documents::absent,
    documents::links,
    documents::paths,
    documents::names,
];

/// Something that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    path: String,
    /// Counted from 1; 0 for the file as a whole.
    line: usize,
    what: String,
}

/// What breaks a rule, and which, rule by rule.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let of_rule = |rule: &Rule| {
        let name = rule.name;
        (rule.check)(tree).into_iter().map(move |finding| format!("{finding} ({name})")).collect::<Vec<_>>()
    };
    RULES.iter().flat_map(of_rule).collect()
}

impl Finding {
    fn new(path: &str, line: usize, what: impl Into<String>) -> Finding {
        Finding { path: path.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.what),
            line => write!(f, "{}:{line}: {}", self.path, self.what),
        }
    }
}
