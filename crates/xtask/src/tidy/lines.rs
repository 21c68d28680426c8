//! Rules on files and their lines.

use super::Finding;
use super::place::{self, Line};
use crate::tree::Tree;

/// A file over 800 lines holds more than one idea.
pub(super) fn short_files(tree: &Tree) -> Vec<Finding> {
    let long = tree.iter().filter(|(_, text)| text.lines().count() > LINES_MAX);
    long.map(|(path, text)| {
        Finding::new(path, 0, format!("{} lines; {LINES_MAX} is the most", text.lines().count()))
    })
    .collect()
}

/// A lint is expected with a reason, never allowed silently.
pub(super) fn reasons(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in rust(tree) {
        for line in place::code(path, text) {
            let opens =
                ["#[allow(", "#![allow(", "#[expect(", "#![expect("].iter().find(|o| line.text.contains(**o));
            // The reason may follow on the next lines, up to the attribute's end.
            let rest = || text.lines().skip(line.number - 1).take(6).collect::<String>();
            let Some(opens) = opens else { continue };
            let attribute = rest().split_once(opens).map(|(_, rest)| rest.to_owned()).unwrap_or_default();
            if !attribute.split(")]").next().is_some_and(|inner| inner.contains("reason =")) {
                findings.push(Finding::new(path, line.number, format!("`{opens}…` without `reason = …`")));
            }
        }
    }
    findings
}

/// Files of tests in which time may pass, and why.
const PACED: &[(&str, &str)] = &[
    ("tests/interop/harness/look.py", "whoever polls leaves the processor to what is polled"),
    ("tests/interop/kills/pace.py", "a load has a rate, and its faults come at moments of it"),
];

/// A test waits for what it tests, not for time.
pub(super) fn no_sleep_in_tests(tree: &Tree) -> Vec<Finding> {
    let in_test = |line: &Line<'_>| line.in_test;
    let mut findings = forbid(rust(tree), in_test, &["thread::sleep", "time::sleep"], "a test never sleeps");
    let paced = |path: &str| PACED.iter().any(|(paced, _)| *paced == path);
    let python = tree.under("tests/").filter(|(path, _)| path.ends_with(".py") && !paced(path));
    findings.extend(forbid(python, in_test, &["time.sleep(", "asyncio.sleep("], "a test never sleeps"));
    let scripts = tree.under("tests/").filter(|(path, _)| path.ends_with("js"));
    findings.extend(forbid(scripts, in_test, &["setTimeout(", "waitForTimeout("], "a test never sleeps"));
    findings
}

/// Files with a channel without a bound, and why.
const UNBOUNDED: &[(&str, &str)] = &[(
    "bench/floor/src/reactor.rs",
    "the floor is the least that a fan-out can cost: it has no policy for a reactor that is behind",
)];

/// Every channel has a bound. In tests a channel of the standard library may have none: a test ends.
pub(super) fn bounded_channels(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let exempt = |path: &str| UNBOUNDED.iter().any(|(exempt, _)| *exempt == path);
    for (path, text) in rust(tree).filter(|(path, _)| !exempt(path)) {
        for line in place::code(path, text) {
            let found = unbounded(line.text).filter(|found| !(line.in_test && *found == STD));
            findings.extend(found.map(|found| {
                Finding::new(path, line.number, format!("`{found}` has no bound; every channel has one"))
            }));
        }
    }
    findings
}

/// The call on this line that makes a channel without a bound: `unbounded…` of tokio, crossbeam, flume and others, and a
/// `channel` that is given no capacity. A oneshot needs none.
fn unbounded(line: &str) -> Option<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let (mut rest, mut previous) = (line, "");
    while let Some(start) = rest.find(is_word) {
        let word = &rest[start..];
        let word = &word[..word.find(|c| !is_word(c)).unwrap_or(word.len())];
        let after = &rest[start + word.len()..];
        let arguments = without_turbofish(after);
        let is_call = arguments.starts_with('(') && previous != "fn";
        if is_call && word.starts_with("unbounded") {
            return Some(word);
        }
        if is_call && word == STD && arguments.starts_with("()") && !is_oneshot(line, after) {
            return Some(STD);
        }
        (rest, previous) = (after, word);
    }
    None
}

/// Whether the call of `channel` that ends before `after` is one of a module `oneshot`.
fn is_oneshot(line: &str, after: &str) -> bool {
    line[..line.len() - after.len()].ends_with("oneshot::channel")
}

/// What follows the type arguments of a call, if there are any on this line.
fn without_turbofish(text: &str) -> &str {
    let Some(inner) = text.strip_prefix("::<") else { return text };
    let mut depth = 1;
    for (at, c) in inner.char_indices() {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &inner[at + 1..];
        }
    }
    text
}

/// `core`, `wire` and `scale` observe nothing: addresses are data, sockets are not. clippy bans the calls, this the names.
pub(super) fn pure_core(tree: &Tree) -> Vec<Finding> {
    let forbidden = &[
        "std::net::Tcp",
        "std::net::Udp",
        "std::net::ToSocketAddrs",
        "std::net::{",
        "std::net::*",
        "std::fs",
        "std::thread",
        "std::env",
        "std::process",
        "Instant::now",
        "SystemTime",
        "now_utc",
        "tokio::",
    ];
    let sources = ["crates/core/src/", "crates/wire/src/", "crates/scale/src/"];
    let files =
        sources.into_iter().flat_map(|folder| tree.under(folder)).filter(|(path, _)| path.ends_with(".rs"));
    forbid(files, |line| !line.in_test, forbidden, "here the world arrives as arguments")
}

/// What crosses shards names places: a shard without its node is one of every node, and a closure stays in its process.
pub(super) fn places(tree: &Tree) -> Vec<Finding> {
    let values =
        ["crates/core/src/message", "crates/core/src/command/", "crates/core/src/model/settlement.rs"];
    let files = tree
        .iter()
        .filter(|(path, _)| path.ends_with(".rs") && values.iter().any(|value| path.starts_with(value)));
    let forbidden = &["ShardId", "Reply<", "dyn Fn", "Sender<", "ConnId"];
    forbid(
        files,
        |line| !line.in_test,
        forbidden,
        "what crosses shards names a `Place`, and can be written down",
    )
}

/// `core` writes XML by `Element` and `Writer`, which escape what they are given.
pub(super) fn no_xml_by_hand(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let is_exempt = |path: &str| NO_XML.iter().any(|exempt| path.starts_with(exempt));
    let files = tree.under("crates/core/src/").filter(|(path, _)| path.ends_with(".rs") && !is_exempt(path));
    for (path, text) in files {
        for line in place::code(path, text).filter(|line| !line.in_test && opens_tag(line.text)) {
            let what = "a tag in a string: XML is written by `xml::Element` or `xml::writer::Writer`";
            findings.push(Finding::new(path, line.number, what));
        }
    }
    findings
}

/// Whether a string on this line begins with a tag.
fn opens_tag(line: &str) -> bool {
    let begins =
        |rest: &str| rest.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '{' | '?'));
    line.split("\"<").skip(1).any(begins)
}

/// The light protocol opens with a word that looks like a tag; the clients of the simulated node write as clients do.
const NO_XML: &[&str] = &["crates/core/src/light/frame.rs", "crates/core/src/sim/"];

/// What a shard's thread runs waits for nothing but its poll: it takes no lock, joins no thread and opens no file. What it
/// shares with other threads (`inbox`, `metrics`, `listen::admission`) is locked there, for some instructions.
pub(super) fn no_waiting_in_shards(tree: &Tree) -> Vec<Finding> {
    let forbidden = &[
        "Mutex",
        "RwLock",
        "Condvar",
        ".lock()",
        ".recv()",
        "recv_timeout(",
        ".join()",
        "thread::sleep",
        "thread::park",
        "fs::",
        "File::",
    ];
    let of_shards = |path: &str| {
        let rest = path.strip_prefix("crates/server/src/");
        rest.is_some_and(|rest| SHARD_CODE.iter().any(|place| rest.starts_with(place)))
    };
    forbid(
        rust(tree).filter(|(path, _)| of_shards(path)),
        |line| !line.in_test,
        forbidden,
        "a shard waits for its poll only",
    )
}

/// The binary opens stores, buses and queues in one folder; everything else of it knows them by their ports.
pub(super) fn one_opens_backends(tree: &Tree) -> Vec<Finding> {
    let names_driver = |line: &str| {
        let named = line.split("carillon_backend::").skip(1);
        let mut named =
            named.map(|rest| rest.strip_prefix('{').map_or(rest, |group| group.trim_end_matches("};")));
        named.any(|rest| {
            let mut names = rest.split([',', ' ', ':', ';', '}']);
            names.any(|name| matches!(name, "sqlite" | "postgres" | "nats" | "redis" | "*"))
        })
    };
    let outside = |path: &str| {
        path.starts_with("crates/carillon/src/") && !path.starts_with("crates/carillon/src/backends/")
    };
    let files = rust(tree).filter(|(path, _)| outside(path));
    let lines = files.flat_map(|(path, text)| place::code(path, text).map(move |line| (path, line)));
    let found = lines.filter(|(_, line)| names_driver(line.text));
    let why = "a driver is named in crates/carillon/src/backends/ alone: everything else knows its port";
    found.map(|(path, line)| Finding::new(path, line.number, why)).collect()
}

/// What of `files` says one of `words` on a line that matters.
fn forbid<'a>(
    files: impl Iterator<Item = (&'a str, &'a str)>,
    matters: impl Fn(&Line<'_>) -> bool,
    words: &[&str],
    why: &str,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in files {
        for line in place::code(path, text).filter(&matters) {
            let found = words.iter().filter(|word| line.text.contains(**word));
            findings.extend(found.map(|word| Finding::new(path, line.number, format!("`{word}`: {why}"))));
        }
    }
    findings
}

/// All Rust files but these rules, which name what they forbid.
fn rust(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    tree.iter().filter(|(path, _)| path.ends_with(".rs") && !path.starts_with("crates/xtask/"))
}

/// What of the server a shard's thread runs, and nobody else.
const SHARD_CODE: &[&str] = &["event_loop/", "shard_io/", "conn/", "interpret", "sends/", "websocket/"];
const LINES_MAX: usize = 800;
/// The standard library's channel without a bound. tokio's of the same name is given a capacity.
const STD: &str = "channel";

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(path: &str, text: &str) -> Tree {
        let mut tree = Tree::default();
        tree.add(path, text);
        tree
    }

    #[test]
    fn long_files_are_found() {
        assert_eq!(short_files(&tree("a.rs", &"x\n".repeat(800))), []);
        assert_eq!(short_files(&tree("a.rs", &"x\n".repeat(801))).len(), 1);
    }

    #[test]
    fn an_attribute_has_its_own_reason() {
        let rule = |text: &str| reasons(&tree("crates/wire/src/a.rs", text)).len();
        assert_eq!(rule("#[allow(dead_code)]\nfn f() {}\n"), 1);
        assert_eq!(rule("#[expect(dead_code)]\n#[expect(unused, reason = \"because\")]\n"), 1);
        assert_eq!(rule("#[expect(dead_code, reason = \"because\")]\n"), 0);
        assert_eq!(rule("#[expect(\n    dead_code,\n    reason = \"because\"\n)]\n"), 0);
    }

    #[test]
    fn xml_is_not_put_together_by_hand() {
        let rule = |path: &str, line: &str| no_xml_by_hand(&tree(path, &format!("    {line}\n"))).len();
        let found = |line: &str| rule("crates/core/src/route/mod.rs", line);
        assert_eq!(found("out.extend_from_slice(b\"<r xmlns='urn:xmpp:sm:3'/>\");"), 1);
        assert_eq!(found("let end = position - \"</item>\".len();"), 1);
        assert_eq!(found("format!(\"<{name} xmlns='urn:x'>\")"), 1);
        assert_eq!(found("let is_less = a == \"<\" || b == \"< 2\"; // \"the 'h' of <a/>\""), 0);
        assert_eq!(rule("crates/core/src/route/tests.rs", "let a = \"<a/>\";"), 0);
        assert_eq!(rule(NO_XML[0], "const OPENING: &[u8] = b\"<regular-socket/>\";"), 0);
    }

    #[test]
    fn only_tests_must_not_sleep() {
        let rule = |path: &str| no_sleep_in_tests(&tree(path, "    std::thread::sleep(pause);\n")).len();
        assert_eq!(rule("crates/carillon/src/cli/send.rs"), 0);
        assert_eq!(rule("crates/carillon/src/cli/tests.rs"), 1);
        assert_eq!(rule("crates/carillon/tests/serve.rs"), 1);
        assert_eq!(
            no_sleep_in_tests(&tree("tests/interop/test_a.py", "time.sleep(1)\n# time.sleep(1)\n")).len(),
            1
        );
        assert_eq!(rule("tests/interop/kills/pace.py"), 0);
    }

    #[test]
    fn a_channel_has_a_bound() {
        let rule = |path: &str, line: &str| bounded_channels(&tree(path, &format!("    {line}\n"))).len();
        let everywhere = [
            "let (a, b) = tokio::sync::mpsc::unbounded_channel();",
            "let (a, b) = mpsc::unbounded_channel::<Vec<u8>>();",
            "let (a, b) = crossbeam_channel::unbounded();",
            "let (a, b) = flume::unbounded::<(u8, Option<u8>)>();",
            "let pair = kanal::unbounded_async();",
        ];
        let unless_in_a_test = [
            "let (a, b) = std::sync::mpsc::channel();",
            "let (a, b) = mpsc::channel::<(Ask, Reply<Answer>)>();",
            "let (a, b) = channel();",
            "let pairs = (oneshot::channel(), channel());",
        ];
        let never = [
            "let (a, b) = mpsc::sync_channel(8);",
            "let (a, b) = tokio::sync::mpsc::channel(8);",
            "let (a, b) = mpsc::channel::<Bytes>(1);",
            "let (a, b) = oneshot::channel::<()>();",
            "let (a, b) = flume::bounded(8);",
            "fn unbounded(line: &str) -> bool {",
            "let is_unbounded = unbounded && channel.is_empty();",
        ];
        for (lines, in_code, in_test) in [(&everywhere[..], 1, 1), (&unless_in_a_test, 1, 0), (&never, 0, 0)]
        {
            for line in lines {
                assert_eq!(rule("crates/server/src/a.rs", line), in_code, "{line}");
                assert_eq!(rule("crates/server/tests/a.rs", line), in_test, "{line}");
            }
        }
    }

    #[test]
    fn addresses_are_data() {
        let rule = |text: &str| pure_core(&tree("crates/core/src/lib.rs", text)).len();
        assert_eq!(rule("use std::net::IpAddr;\n"), 0);
        assert_eq!(rule("use std::net::TcpStream;\n"), 1);
        let sent = |text: &str| places(&tree("crates/core/src/message/mod.rs", text)).len();
        assert_eq!((sent("use crate::model::ShardId;\n"), sent("use crate::model::Place;\n")), (1, 0));
        let elsewhere = |path: &str| pure_core(&tree(path, "use std::fs;\n")).len();
        assert_eq!((elsewhere("crates/scale/src/lib.rs"), elsewhere("crates/load/src/lib.rs")), (1, 0));
        assert_eq!(rule("/// Not `SystemTime`.\nlet now = SystemTime::now();\n"), 1);
        assert_eq!(rule("#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n"), 0);
    }

    #[test]
    fn drivers_are_named_in_one_folder() {
        let rule = |path: &str, line: &str| one_opens_backends(&tree(path, &format!("{line}\n"))).len();
        let serve = "crates/carillon/src/serve/mod.rs";
        assert_eq!(rule(serve, "use carillon_backend::postgres::Options;"), 1);
        assert_eq!(rule(serve, "use carillon_backend::{StoreOptions, nats};"), 1);
        assert_eq!(rule(serve, "use carillon_backend::{StoreOptions, SCHEMA};"), 0);
        assert_eq!(rule("crates/carillon/src/backends/nats.rs", "use carillon_backend::nats;"), 0);
        assert_eq!(rule("crates/server/src/testing/mod.rs", "use carillon_backend::sqlite;"), 0);
    }

    #[test]
    fn shards_do_not_wait() {
        let rule = |path: &str, line: &str| no_waiting_in_shards(&tree(path, &format!("    {line}\n"))).len();
        assert_eq!(rule("crates/server/src/event_loop/read.rs", "let state = shared.lock();"), 1);
        assert_eq!(rule("crates/server/src/interpret/mod.rs", "let answer = answers.recv().unwrap();"), 1);
        assert_eq!(rule("crates/server/src/event_loop/mod.rs", "poll.poll(&mut events, timeout)?;"), 0);
        assert_eq!(rule("crates/server/src/event_loop/tests/pulse.rs", "let state = shared.lock();"), 0);
        assert_eq!(rule("crates/server/src/channels/inbox.rs", "let state = self.state.lock();"), 0);
    }
}
