//! Commands read from a command line and run against a node that says what it is told to.

use super::*;
use clap::CommandFactory;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A request as the node saw it: method and path, and the body.
type Seen = (String, String);

/// A node that gives the answers it was made with, in their order, one connection each, and notes what it was asked.
pub(super) struct FakeNode {
    url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    thread: JoinHandle<()>,
}

impl FakeNode {
    pub(super) fn new(answers: Vec<(u16, String)>) -> FakeNode {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = seen.clone();
        let thread = std::thread::spawn(move || {
            for (status, body) in answers {
                let (stream, _) = listener.accept().expect("a connection");
                let request = answer(stream, status, &body).expect("a request");
                noted.lock().expect("nobody panics with it").push(request);
            }
        });
        FakeNode { url, seen, thread }
    }

    /// Runs a command against it: what it prints and how it ended.
    pub(super) fn run(&self, args: &[&str]) -> (String, Result<(), (u8, String)>) {
        let remote = ["--url", self.url.as_str(), "--key", "crl_key"];
        run(Cli::try_parse_from(["carillon"].iter().chain(args).chain(&remote)).expect("a command"))
    }

    /// What it was asked, once it gave all its answers.
    pub(super) fn asked(self) -> Vec<Seen> {
        self.thread.join().expect("all answers given");
        let seen = self.seen.lock().expect("nobody panics with it");
        seen.clone()
    }
}

/// Reads one request, which has to bear the key, and answers it.
fn answer(stream: TcpStream, status: u16, body: &str) -> std::io::Result<Seen> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        reader.read_line(&mut head)?;
    }
    let lower = head.to_ascii_lowercase();
    assert!(lower.contains("authorization: bearer crl_key\r\n"), "{head}");
    let length = lower.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
    let mut sent = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut sent)?;
    let answer =
        format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
    reader.get_mut().write_all(answer.as_bytes())?;
    let first = head.lines().next().unwrap_or_default().trim_end_matches(" HTTP/1.1").to_owned();
    Ok((first, String::from_utf8(sent).expect("text")))
}

fn run(cli: Cli) -> (String, Result<(), (u8, String)>) {
    let mut out = Vec::new();
    let Command::Printing(command) = cli.command else { panic!("it prints nothing") };
    let done = print(command, &mut out).map_err(|failure| (failure.code(), failure.to_string()));
    (String::from_utf8(out).expect("text"), done)
}

pub(super) fn ok(body: &Value) -> (u16, String) {
    (200, body.to_string())
}

pub(super) fn asked(method_and_path: &str, body: &str) -> Seen {
    (method_and_path.to_owned(), body.to_owned())
}

#[test]
fn the_command_line_is_well_formed() {
    Cli::command().debug_assert();
}

#[test]
fn serve_takes_a_file_settings_and_a_ready_file() {
    let args =
        ["carillon", "serve", "--config", "a.toml", "--set", "a=1", "--set", "b=2", "--ready-file", "r"];
    let Command::Serve(serve) = Cli::try_parse_from(args).expect("a command").command else {
        panic!("serve")
    };
    assert_eq!(serve.source.file, Some("a.toml".into()));
    assert_eq!(
        (serve.source.overrides, serve.ready_file),
        (vec!["a=1".into(), "b=2".into()], Some("r".into()))
    );
}

#[test]
fn what_is_no_command_ends_with_2() {
    for args in [
        &["carillon"][..],
        &["carillon", "dance"],
        &["carillon", "send", "a@x"],
        &["carillon", "send", "a@x", "--payload", "1", "--audience", "some"],
        &["carillon", "key", "create", "n"],
        &["carillon", "key", "create", "n", "--scope", "all"],
        &["carillon", "key", "create", "n", "--scope", "send", "--expires-in", "soon"],
        &["carillon", "account", "set", "a@x"],
        &["carillon", "domain", "set", "d", "--registration", "maybe"],
        &["carillon", "session", "list", "--limit", "1001"],
    ] {
        assert_eq!(Cli::try_parse_from(args).expect_err("not a command").exit_code(), 2, "{args:?}");
    }
}

#[test]
fn config_commands_need_no_node() {
    let command =
        |args: &[&str]| run(Cli::try_parse_from(["carillon", "config"].iter().chain(args)).expect("valid"));
    assert_eq!(command(&["sample"]), (crate::config::print::sample(), Ok(())));
    assert_eq!(command(&["manual"]), (crate::config::print::manual(), Ok(())));
    assert_eq!(
        command(&["check", "--set", "shard=2"]),
        (
            String::new(),
            Err((
                2,
                "the settings are not valid\n--set: there is no setting shard; did you mean shards?"
                    .to_owned()
            ))
        )
    );
    let folder = tempfile::tempdir().expect("a folder");
    let (good, bad) = (folder.path().join("good.json"), folder.path().join("bad.json"));
    std::fs::write(&good, json!([]).to_string()).expect("written");
    std::fs::write(&bad, json!({"applinks": {}}).to_string()).expect("written");
    let data = format!("--data-dir={}", folder.path().join("data").display());
    let free = ["c2s", "c2s_tls", "websocket", "http"].map(|port| format!("--set={port}.port=0"));
    let check = |file: &str| {
        let args = ["check", data.as_str()].into_iter().chain(free.iter().map(String::as_str));
        command(&args.chain(["--link-file", file]).collect::<Vec<_>>())
    };
    let (said, done) = check(&format!("assetlinks.json={}", good.display()));
    assert_eq!(done, Ok(()), "{said}");
    let (said, done) = check(&format!("apple-app-site-association={}", bad.display()));
    let why = format!("error: {}: `applinks.details` has to be a list\n", bad.display());
    assert!(said.ends_with(&why), "{said}");
    assert_eq!(done, Err((1, "the settings are valid, but there is 1 error".to_owned())));
    let args = ["carillon", "config", "check", "--link-file", "robots.txt=a"];
    assert_eq!(Cli::try_parse_from(args).expect_err("no such file").exit_code(), 2);
    assert_eq!(
        command(&["explain", "shard"]).1,
        Err((2, "there is no setting shard; did you mean shards?".to_owned()))
    );
}

#[test]
fn explain_shows_every_setting() {
    let args = ["carillon", "config", "explain", "--set", "c2s.port=7"];
    let (table, done) = run(Cli::try_parse_from(args).expect("valid"));
    assert_eq!(done, Ok(()));
    let shown: Vec<&str> = table.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    let keys: Vec<&str> = crate::config::SETTINGS.iter().map(|setting| setting.key).collect();
    assert_eq!(shown, keys);
    let port = table.lines().find(|line| line.starts_with("c2s.port")).expect("shown");
    assert_eq!(port.split_whitespace().collect::<Vec<_>>(), ["c2s.port", "--set", "restart", "7"]);

    let (group, done) =
        run(Cli::try_parse_from(["carillon", "config", "explain", "archive"]).expect("valid"));
    assert_eq!(done, Ok(()));
    let heads: Vec<&str> = group.lines().filter(|line| line.starts_with("archive.")).collect();
    let within: Vec<&str> = keys.iter().copied().filter(|key| key.starts_with("archive.")).collect();
    assert!(within.len() > 1 && heads == within, "{group}");

    let args = ["carillon", "config", "explain", "shards", "--json"];
    let one: Value = serde_json::from_str(&run(Cli::try_parse_from(args).expect("valid")).0).expect("JSON");
    assert_eq!((&one["key"], &one["value"], &one["from"]), (&json!("shards"), &json!(0), &json!("default")));
}

#[test]
fn domains_are_listed_made_and_changed() {
    let policy = json!({"sessions": "multi", "registration": false, "pubsub_create": "any", "sessions_max": 20,
            "messages_durable": true, "resumption_ms_max": 86_400_000, "archive": false});
    let domain = json!({"domain": "a.example", "policy": policy});
    let node = FakeNode::new(vec![
        ok(&json!({"domains": [domain], "default_domain": "a.example"})),
        (201, domain.to_string()),
        ok(&domain),
        ok(&domain),
    ]);
    assert_eq!(
        node.run(&["domain", "list"]).0,
        "DOMAIN     SESSIONS  MAX  REGISTRATION  TOPICS BY  DURABLE  RESUMED WITHIN MS  ARCHIVE\n\
         a.example  multi     20   no            any        yes      86400000           no\n"
    );
    assert_eq!(
        node.run(&["domain", "create", "b.example", "--registration", "true"]).0,
        "created b.example\n"
    );
    assert_eq!(
        node.run(&["domain", "add", "b.example"]).0,
        "the domain b.example exists already; nothing was changed\n"
    );
    assert_eq!(
        node.run(&["domain", "set", "a.example", "--sessions", "single", "--resumption-ms-max", "60000"]).0,
        "changed a.example\n"
    );
    assert_eq!(
        node.run(&["domain", "delete", "a.example"]).1,
        Err((
            2,
            "this deletes a.example with its accounts, topics, notifications and keys: say --yes".to_owned()
        ))
    );
    assert_eq!(
        node.asked(),
        [
            asked("GET /v1/admin/domains", ""),
            asked("PUT /v1/admin/domains/b.example", r#"{"registration":true}"#),
            asked("PUT /v1/admin/domains/b.example", "{}"),
            asked("PATCH /v1/admin/domains/a.example", r#"{"resumption_ms_max":60000,"sessions":"single"}"#),
        ]
    );
}

/// What a node has, and what is done to it.
#[test]
fn everything_is_managed_by_the_same_verbs() {
    let verbs = |noun: &str| -> Vec<String> {
        let command = Cli::command();
        let noun = command.find_subcommand(noun).unwrap_or_else(|| panic!("no {noun}"));
        noun.get_subcommands().map(|verb| verb.get_name().to_owned()).collect()
    };
    for (noun, expected) in [
        ("account", &["list", "show", "create", "set", "delete"][..]),
        ("domain", &["list", "show", "create", "set", "delete"]),
        ("topic", &["list", "show", "create", "set", "delete"]),
        ("webhook", &["list", "show", "create", "set", "delete"]),
        ("link", &["list", "show", "create", "set", "delete"]),
        ("key", &["list", "show", "create", "delete"]),
        ("session", &["list", "show", "end"]),
        ("notification", &["list", "show", "cancel"]),
    ] {
        let verbs = verbs(noun);
        assert!(expected.iter().all(|verb| verbs.iter().any(|v| v == verb)), "{noun}: {verbs:?}");
        assert!(
            ["add", "remove", "update", "kick"].iter().all(|old| !verbs.iter().any(|v| v == old)),
            "{noun}"
        );
    }
}

#[test]
fn verbs_of_earlier_releases_are_taken() {
    for args in [
        &["account", "add", "a@x"][..],
        &["account", "remove", "a@x"],
        &["domain", "add", "d"],
        &["domain", "remove", "d"],
        &["key", "add", "n", "--scope", "send"],
        &["key", "remove", "1"],
        &["webhook", "update", "1"],
        &["session", "kick", "a@x"],
    ] {
        assert!(Cli::try_parse_from(["carillon"].iter().chain(args)).is_ok(), "{args:?}");
    }
}

#[test]
fn a_topic_that_exists_is_left_as_it_is_and_set_changes_it() {
    let topic = json!({"name": "t", "config": {"max_items": 5}});
    let node = FakeNode::new(vec![(201, topic.to_string()), ok(&topic), ok(&topic)]);
    assert_eq!(node.run(&["topic", "create", "t", "--max-items", "5"]).0, "created t\n");
    assert_eq!(node.run(&["topic", "create", "t"]).0, "the topic t exists already; nothing was changed\n");
    assert_eq!(node.run(&["topic", "set", "t", "--title", "T"]).0, "changed t\n");
    assert_eq!(
        node.asked(),
        [
            asked("PUT /v1/topics/t", r#"{"max_items":5}"#),
            asked("PUT /v1/topics/t", "{}"),
            asked("PATCH /v1/topics/t", r#"{"title":"T"}"#),
        ]
    );
}

#[test]
fn one_thing_is_shown() {
    let session = |resource: &str, state: &str| json!({"jid": format!("a@x/{resource}"), "state": state});
    let sessions = ok(&json!({"sessions": [session("phone", "connected"), session("desk", "parked")]}));
    let node = FakeNode::new(vec![
        ok(&json!({"jid": "a@x", "state": "enabled", "sessions": 1, "topics": ["t"]})),
        ok(&json!({"id": 3, "name": "ci", "expires_at": null})),
        ok(&json!({"id": "N", "state": "dropped", "reason": "not-active"})),
        ok(&json!({"id": "N", "state": "stored", "pushes": [
            {"registration": 1, "node": "phone\u{1b}", "channel": "apns", "state": "taken", "requests": 1, "sent_at": "T1", "answered_at": "T2"},
            {"registration": 2, "node": "desk", "channel": "web_push", "state": "failed", "reason": "503", "requests": 3, "sent_at": "T3", "answered_at": "T4"},
        ]})),
        sessions.clone(),
        sessions,
        (204, String::new()),
    ]);
    assert_eq!(
        node.run(&["account", "show", "a@x"]).0,
        "jid       a@x\nstate     enabled\nsessions  1\ntopics    t\n"
    );
    assert_eq!(node.run(&["key", "show", "3"]).0, "id          3\nname        ci\nexpires_at  -\n");
    assert_eq!(
        node.run(&["notification", "show", "N"]).0,
        "id      N\nstate   dropped\nreason  not-active\n"
    );
    assert_eq!(
        node.run(&["notification", "show", "N"]).0,
        "id      N\nstate   stored\npush.1  phone\\u{1b} by apns: taken, sent T1, answered T2\n\
         push.2  desk by web_push: failed, sent T3, answered T4, 3 requests (503)\n"
    );
    assert_eq!(node.run(&["session", "show", "a@x/desk"]).0, "jid    a@x/desk\nstate  parked\n");
    assert_eq!(node.run(&["session", "show", "a@x/tv"]).1, Err((1, "a@x/tv has no session".to_owned())));
    assert_eq!(node.run(&["account", "set", "a@x", "--enabled", "false"]).0, "disabled a@x\n");
    assert_eq!(node.asked().last(), Some(&asked("POST /v1/devices/a/disable?domain=x", "{}")));
}

#[test]
fn the_last_admin_key_goes_with_an_option_of_this_program() {
    let detail = "key 1 is the last with scope `admin` that reaches the whole node; `last=true` removes it all the same";
    let node = FakeNode::new(vec![
        (409, json!({"status": 409, "detail": detail}).to_string()),
        (204, String::new()),
    ]);
    let said =
        "key 1 is the last with scope `admin` that reaches the whole node; `--last` removes it all the same";
    assert_eq!(node.run(&["key", "delete", "1", "--yes"]).1, Err((1, said.to_owned())));
    assert_eq!(node.run(&["key", "delete", "1", "--last", "--yes"]).0, "deleted key 1\n");
    assert_eq!(node.asked()[1], asked("DELETE /v1/admin/keys/1?last=true", ""));
}

/// The last clients of a drain may take their time.
#[test]
fn a_drain_prints_a_line_per_step() {
    let progress = |state: &str, left: u64| {
        ok(&json!({"state": state, "total": 2, "left": left, "ends_in_ms": 0, "slices_done": 1, "slices": 1}))
    };
    let steps =
        [progress("draining", 2), progress("draining", 1), progress("draining", 1), progress("drained", 0)];
    let node = FakeNode::new(steps.to_vec());
    let (printed, done) = node.run(&["drain", "--over", "0s"]);
    assert_eq!(
        (printed.as_str(), done),
        ("2 of 2 left, 0 s to go\n1 of 2 left, 0 s to go\ndrained: none of 2 left\n", Ok(()))
    );
    node.asked();
}

#[test]
fn lists_are_read_to_their_end() {
    let node = FakeNode::new(vec![
        ok(&json!({"topics": [{"name": "a/b"}], "next": "a/b"})),
        ok(
            &json!({"topics": [{"name": "c", "config": {"max_items": 3, "persist_items": false}}], "next": null}),
        ),
        ok(&json!({"subscribers": ["a@x", "b@x"], "next": null})),
    ]);
    let (table, _) = node.run(&["topic", "list", "--domain", "d"]);
    assert_eq!(
        table,
        "TOPIC  ACCESS  PUBLISH  KEEPS  CREATED  TITLE\na/b    -       -        -      -        -\n\
         c      -       -        0      -        -\n"
    );
    assert_eq!(node.run(&["topic", "subscribers", "a/b"]).0, "SUBSCRIBER\na@x\nb@x\n");
    assert_eq!(
        node.asked(),
        [
            asked("GET /v1/topics?domain=d&limit=1000", ""),
            asked("GET /v1/topics?domain=d&limit=1000&after=a%2Fb", ""),
            asked("GET /v1/topics/a%2Fb/subscribers?limit=1000", ""),
        ]
    );
}

#[test]
fn keys_are_printed_alone_and_payloads_go_as_written() {
    let node = FakeNode::new(vec![
        (201, json!({"key": "crl_new", "id": 3}).to_string()),
        (202, json!({"id": "i1", "published_at": "T"}).to_string()),
        (204, String::new()),
    ]);
    assert_eq!(node.run(&["key", "create", "ci", "--scope", "send,topics"]).0, "crl_new\n");
    let publish = ["topic", "publish", "news", "--payload", "{\"z\":1.0,\"a\":[]}", "--id", "x"];
    assert_eq!(node.run(&publish).0, "published i1\n");
    assert_eq!(node.run(&["account", "delete", "a@x", "--yes"]).0, "deleted a@x\n");
    assert_eq!(
        node.asked(),
        [
            asked("POST /v1/admin/keys", r#"{"name":"ci","scopes":["send","topics"]}"#),
            asked("POST /v1/topics/news/items", r#"{"id":"x","payload":{"z":1.0,"a":[]}}"#),
            asked("DELETE /v1/admin/accounts/a%40x", ""),
        ]
    );
}

#[test]
fn what_cannot_be_taken_back_wants_a_yes() {
    let node = FakeNode::new(Vec::new());
    for (command, deed) in [
        (&["account", "delete", "a@x"][..], "deletes a@x with its subscriptions and all that waits for it"),
        (&["topic", "delete", "news"], "deletes the topic news with its items and subscriptions"),
        (&["key", "delete", "3"], "deletes key 3: whoever uses it is refused from now on"),
    ] {
        assert_eq!(node.run(command).1, Err((2, format!("this {deed}: say --yes"))));
    }
    assert_eq!(node.asked(), []);
}

#[test]
fn accounts_are_generated_unless_they_are_there() {
    let page = |names: &[&str], next: Option<&str>| {
        let accounts: Vec<Value> = names.iter().map(|name| json!({"jid": format!("{name}@d")})).collect();
        ok(&json!({"accounts": accounts, "next": next}))
    };
    let node = FakeNode::new(vec![
        ok(&json!({"domains": [], "default_domain": "d"})),
        page(&["u00", "u10"], Some("u10")),
        page(&["uther", "v1"], None),
        (200, json!({"lines": 3, "imported": 3, "failed": 0, "errors": [], "done": true}).to_string()),
        page(&["u1"], None),
    ]);
    let (csv, done) = node.run(&["account", "generate", "--count", "3", "--prefix", "u"]);
    assert_eq!(done, Ok(()));
    let lines: Vec<&str> = csv.lines().collect();
    let names: Vec<&str> = lines.iter().map(|line| line.split(',').next().unwrap_or_default()).collect();
    assert_eq!(names, ["jid", "u0@d", "u1@d", "u2@d"]);
    let passwords: std::collections::BTreeSet<&str> =
        lines[1..].iter().filter_map(|line| line.split(',').nth(1)).collect();
    assert!(passwords.len() == 3 && passwords.iter().all(|password| password.len() == 22), "{csv}");
    let again = ["account", "generate", "--count", "3", "--prefix", "u", "--domain", "d"];
    assert_eq!(node.run(&again).1, Err((1, "u1@d exists already: choose another --prefix".to_owned())));
    let asked = node.asked();
    assert_eq!(asked[1].0, "GET /v1/admin/accounts?domain=d&limit=1000&after=u");
    assert_eq!(asked[2].0, "GET /v1/admin/accounts?domain=d&limit=1000&after=u10");
    let sent: Value = serde_json::from_str(asked[3].1.lines().nth(1).expect("three lines")).expect("JSON");
    assert_eq!(format!("{},{}", sent["jid"].as_str().unwrap(), sent["password"].as_str().unwrap()), lines[2]);
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let (script, done) = run(Cli::try_parse_from(["carillon", "completions", shell]).expect("valid"));
        assert!(done.is_ok() && script.contains("connect") && script.contains("generate"), "{shell}");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("text");
    assert_eq!(run(Cli::try_parse_from(["carillon", "man", path]).expect("valid")).1, Ok(()));
    for page in ["carillon.1", "carillon-serve.1", "carillon-config-check.1", "carillon-load-run.1"] {
        let text = std::fs::read_to_string(folder.path().join(page)).expect(page);
        assert!(text.contains(".TH") && text.contains(".SH OPTIONS"), "{page}");
    }
    assert!(!folder.path().join("carillon-man.1").exists(), "it is for those who make packages");
    let nowhere = folder.path().join("none");
    let refused =
        run(Cli::try_parse_from(["carillon", "man", nowhere.to_str().expect("text")]).expect("valid")).1;
    let why = format!("{}: No such file or directory (os error 2)", nowhere.display());
    assert_eq!(refused, Err((2, why)));
}

#[test]
fn a_notification_is_followed_to_its_end() {
    let mut trace = json!({"id": "N", "state": "stored", "accepted_at": "T1", "stored_at": "T2"});
    let stored = trace.clone();
    trace["sent_at"] = "T3".into();
    trace["state"] = "acknowledged".into();
    trace["ended_at"] = "T4".into();
    trace["acknowledged_by"] = "stream-management".into();
    let node = FakeNode::new(vec![
        (202, json!({"results": [], "to": "a@x", "id": "N", "state": "stored"}).to_string()),
        ok(&stored),
        ok(&stored),
        ok(&trace),
    ]);
    let (printed, done) = node.run(&["send", "a@x", "--payload", "{}", "--ttl", "60", "--wait"]);
    assert_eq!(
        (printed.as_str(), done),
        (
            "accepted      T1\nstored        T2\nsent          T3\nacknowledged  T4  by stream-management\n",
            Ok(())
        )
    );
    let seen = node.asked();
    assert_eq!(seen[0], asked("POST /v1/notifications", r#"{"to":"a@x","payload":{},"ttl":60}"#));
    assert_eq!(seen[3], asked("GET /v1/notifications/N", ""));
}

#[test]
fn a_notification_that_was_not_delivered_is_a_failure() {
    let dropped =
        json!({"id": "N", "state": "dropped", "accepted_at": "T", "ended_at": "T", "reason": "not-active"});
    let node =
        FakeNode::new(vec![ok(&json!({"id": "N"})), ok(&dropped), ok(&json!({"id": "N"})), ok(&dropped)]);
    let failure = Err((1, "N was not delivered: dropped because not-active".to_owned()));
    let (printed, done) = node.run(&["send", "a", "--payload", "1", "--wait"]);
    assert_eq!(
        (printed.as_str(), done),
        ("accepted      T\ndropped       T  because not-active\n", failure.clone())
    );
    let (printed, done) = node.run(&["send", "a", "--payload", "1", "--wait", "--json"]);
    assert_eq!((serde_json::from_str(&printed).ok(), done), (Some(dropped), failure));
    node.asked();
}

#[test]
fn what_the_node_says_is_told() {
    let problem =
        |status: u16, detail: &str| (status, json!({"status": status, "detail": detail}).to_string());
    let node = FakeNode::new(vec![
        problem(401, "the key is unknown"),
        problem(409, "there is an account `a@x` already"),
        (404, "<html>".to_owned()),
        (200, "<html>".to_owned()),
        ok(&json!({"colours": []})),
    ]);
    let url = node.url.clone();
    let list = ["account", "list"];
    assert_eq!(node.run(&list).1, Err((1, format!("{url} does not take the key: the key is unknown"))));
    assert_eq!(
        node.run(&["account", "create", "a@x", "--password", "p"]).1,
        Err((1, "there is an account `a@x` already".to_owned()))
    );
    let stranger = format!("what answers at {url} is not a Carillon node, or one of another version");
    assert_eq!(node.run(&list).1, Err((3, stranger.clone())));
    let not_json = "the node's answer is not JSON: expected value at line 1 column 1".to_owned();
    assert_eq!(node.run(&list).1, Err((3, not_json)));
    assert_eq!(node.run(&list).1, Err((3, stranger)));
    node.asked();
}

#[test]
fn where_nobody_listens_no_node_answers() {
    let node = FakeNode::new(Vec::new());
    let url = node.url.clone();
    let gone = FakeNode { url, seen: Arc::default(), thread: std::thread::spawn(|| ()) };
    node.asked();
    let (printed, done) = gone.run(&["status"]);
    let (code, why) = done.expect_err("nobody is there");
    assert_eq!((printed.as_str(), code), ("", 3));
    assert!(why.starts_with(&format!("no node answers at {}: ", gone.url)), "{why}");
}
