//! Messages are compared whole: they are what people read when nothing works.

use super::*;
use crate::process::telemetry::{LogFormat, LogLevel};
use carillon_core::sasl::Mechanism;
use std::net::{IpAddr, Ipv6Addr};

fn load(file: &str, overrides: &[&str]) -> Result<Config, Problems> {
    let source = Source {
        file: Some(PathBuf::from("carillon.toml")),
        overrides: overrides.iter().map(|&o| o.to_owned()).collect(),
        data_dir: None,
    };
    load::load(&source, Some(file), &[])
}

#[track_caller]
fn loaded(file: &str, overrides: &[&str]) -> Settings {
    load(file, overrides).expect("valid").settings
}

#[track_caller]
fn problems(file: &str, overrides: &[&str]) -> String {
    load(file, overrides).expect_err("invalid").to_string()
}

#[test]
fn no_file_and_no_options_are_the_defaults() {
    let config = Config::load(&Source::default()).expect("valid");
    assert_eq!(config.settings, Settings::default());
    assert!(SETTINGS.iter().all(|s| *config.origin(s) == Origin::Default));
}

#[test]
fn reads_tables_dotted_keys_and_units() {
    let s = loaded(
        "domain = 'example.org'\n\
         c2s.port = 0x1466\n\
         [listen]\naddress = ['127.0.0.1', '::1']\n\
         [timeouts]\nauth_ms = '45s'\nclose_ms = 100\n\
         [limits]\nstanza_bytes = '1MiB'\n\
         [tls]\ncertificate = '/etc/tls/a.pem'\nkey = '/etc/tls/a.key'\n\
         [sessions]\npolicy = 'single'\n\
         [features]\ndisabled = 'carbons'\n",
        &[],
    );
    assert_eq!((s.node.domain.as_str(), s.server.c2s.port), ("example.org", 5222));
    assert_eq!(s.server.addresses[1], IpAddr::V6(Ipv6Addr::LOCALHOST));
    assert_eq!(
        (s.core.timeouts.auth_ms, s.core.timeouts.close_ms, s.core.limits.stanza_bytes),
        (45_000, 100, 1 << 20)
    );
    assert_eq!(s.node.certificate, Some(PathBuf::from("/etc/tls/a.pem")));
    assert_eq!(s.policy.sessions, carillon_core::model::SessionPolicy::Single);
    assert_eq!(s.core.features_disabled, ["carbons"]);
}

#[test]
fn options_count_over_the_file_and_the_last_one_over_the_first() {
    let overrides = [
        "c2s.port=6000",
        "c2s.port=6222",
        "listen.address=127.0.0.1,::1",
        "auth.mechanisms=[\"PLAIN\"]",
        "domain=42",
        "log.format=\"json\"",
        "timeouts.auth_ms=5s",
        "limits.max_connections = 20_000",
    ];
    let config = load("[c2s]\nport = 7000\nenabled = true\n", &overrides).expect("valid");
    let s = &config.settings;
    assert_eq!((s.server.c2s.port, s.server.addresses.len(), s.core.timeouts.auth_ms), (6222, 2, 5000));
    assert_eq!((s.node.domain.as_str(), s.log.format), ("42", LogFormat::Json));
    assert_eq!(
        (s.core.mechanisms.as_slice(), s.server.bounds.connections),
        (&[Mechanism::Plain][..], 20_000)
    );

    let origin = |key| config.origin(Setting::named(key).expect("there is one")).clone();
    assert_eq!(origin("c2s.port"), Origin::Set(Place::CommandLine));
    assert_eq!(origin("c2s.enabled"), Origin::Set(Place::File(PathBuf::from("carillon.toml"), 3)));
    assert_eq!(origin("http.port"), Origin::Default);
}

#[test]
fn the_environment_counts_over_the_file_and_the_command_line_over_both() {
    let source = Source {
        file: Some(PathBuf::from("carillon.toml")),
        overrides: vec!["c2s_tls.port=3".to_owned(), "data_dir=set".to_owned()],
        data_dir: Some(PathBuf::from("option")),
    };
    let file = "c2s.port = 1\nhttp.port = 1\nc2s_tls.port = 1\n";
    let load = |variables: &[(&str, &str)]| {
        let variables: Vec<_> =
            variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        load::load(&source, Some(file), &variables)
    };
    let config = load(&[
        ("CARILLON_C2S_PORT", "2"),
        ("CARILLON_C2S_TLS_PORT", "2"),
        ("CARILLON_LISTEN_ADDRESS", "127.0.0.1,::1"),
        ("CARILLON_DATA_DIR", "environment"),
    ])
    .expect("valid");
    let s = &config.settings;
    assert_eq!((s.node.http_port, s.server.c2s.port, s.server.c2s_tls.port), (1, 2, 3));
    assert_eq!((s.server.addresses.len(), s.node.data_dir.as_path()), (2, std::path::Path::new("option")));
    let from = |key| print::origin(&config, Setting::named(key).expect("there is one"));
    assert_eq!(from("http.port"), "carillon.toml:2");
    assert_eq!(from("c2s.port"), "CARILLON_C2S_PORT");
    assert_eq!(from("c2s_tls.port"), "--set");
    assert_eq!(from("data_dir"), "--data-dir");

    let wrong = load(&[("CARILLON_C2S_PORT", "tcp://10.0.0.1:80")]).expect_err("not a port").to_string();
    assert_eq!(
        wrong,
        "CARILLON_C2S_PORT: c2s.port = tcp://10.0.0.1:80 has the wrong type: it takes a whole number from 0 to 65535"
    );
}

#[test]
fn variables_that_name_no_setting_are_told_and_stop_nothing() {
    let variables = ["CARILLON_C2S_PROT", "CARILLON_COLOUR", "CARILLON_KEY", "CARILLON_LOAD_PASSWORD"];
    let variables: Vec<_> = variables.iter().map(|&name| (name.to_owned(), "1".to_owned())).collect();
    let config = load::load(&Source::default(), None, &variables).expect("valid");
    assert_eq!(
        config.warnings,
        [
            "the variable CARILLON_C2S_PROT is for no setting; did you mean CARILLON_C2S_PORT?",
            "the variable CARILLON_COLOUR is for no setting",
        ]
    );
}

#[test]
fn each_setting_has_a_variable_of_its_own() {
    let mut seen = std::collections::BTreeSet::new();
    for setting in SETTINGS {
        let variable = environment::variable(setting.key);
        assert_eq!(environment::key(&variable), Some(setting.key));
        assert!(seen.insert(variable), "{} shares its variable", setting.key);
    }
}

#[test]
fn unknown_keys_say_where_and_what_may_be_meant() {
    for (file, says) in [
        ("[c2s]\nprot = 1", "carillon.toml:2: there is no setting c2s.prot; did you mean c2s.port?"),
        ("doman = 'x'", "carillon.toml:1: there is no setting doman; did you mean domain?"),
        (
            "[limits]\nauth_ms = 1",
            "carillon.toml:2: there is no setting limits.auth_ms; did you mean timeouts.auth_ms?",
        ),
        ("colour = 1", "carillon.toml:1: there is no setting colour"),
        ("[nothing]", "carillon.toml:1: there is no setting nothing"),
        ("c2s = 1", "carillon.toml:1: there is no setting c2s"),
        ("[domain]\nname = 'x'", "carillon.toml:2: there is no setting domain.name; did you mean node.name?"),
    ] {
        assert_eq!(problems(file, &[]), says);
    }
    assert_eq!(
        problems("", &["log.levl=debug"]),
        "--set: there is no setting log.levl; did you mean log.level?"
    );
}

#[test]
fn values_of_the_wrong_type_say_what_the_setting_takes() {
    for (file, says) in [
        (
            "[c2s]\nport = 'xmpp'",
            "carillon.toml:2: c2s.port = 'xmpp' has the wrong type: it takes a whole number from 0 to 65535",
        ),
        (
            "c2s.port = \"5222\"",
            "carillon.toml:1: c2s.port = \"5222\" has the wrong type: it takes a whole number from 0 to 65535",
        ),
        ("c2s.enabled = 1", "carillon.toml:1: c2s.enabled = 1 has the wrong type: it takes true or false"),
        ("domain = 5", "carillon.toml:1: domain = 5 has the wrong type: it takes a text of 1 to 1023 bytes"),
        (
            "timeouts.auth_ms = '3 weeks'",
            "carillon.toml:1: timeouts.auth_ms = '3 weeks' has the wrong type: it takes 100 to 3600000 milliseconds \
             (100ms to 1h), as a number or as text such as \"30s\"",
        ),
        (
            "listen.address = [1]",
            "carillon.toml:1: listen.address = [1] has the wrong type: it takes a list of IP addresses",
        ),
        ("shards = 1.5", "carillon.toml:1: shards = 1.5 has the wrong type: it takes 0 to 1024 shards"),
    ] {
        assert_eq!(problems(file, &[]), says);
    }
}

#[test]
fn values_out_of_bounds_say_the_bounds() {
    for (file, says) in [
        (
            "c2s.port = 70_000",
            "carillon.toml:1: c2s.port = 70_000 is out of bounds: it takes a whole number from 0 to 65535",
        ),
        ("shards = -1", "carillon.toml:1: shards = -1 is out of bounds: it takes 0 to 1024 shards"),
        ("domain = ''", "carillon.toml:1: domain = '' is out of bounds: it takes a text of 1 to 1023 bytes"),
        (
            "limits.stanza_bytes = '9KiB'",
            "carillon.toml:1: limits.stanza_bytes = '9KiB' is out of bounds: it takes 10000 to 16777216 bytes \
             (10000B to 16MiB), as a number or as text such as \"64KiB\"",
        ),
        (
            "sessions.policy = 'many'",
            "carillon.toml:1: sessions.policy = 'many' is out of bounds: it takes one of \"single\", \"multi\"",
        ),
        (
            "listen.address = ['localhost']",
            "carillon.toml:1: listen.address = ['localhost'] is out of bounds: it takes a list of IP addresses",
        ),
        (
            "auth.mechanisms = ['PLAIN', 'DIGEST-MD5']",
            "carillon.toml:1: auth.mechanisms = ['PLAIN', 'DIGEST-MD5'] is out of bounds: it takes a list of \
             \"SCRAM-SHA-256-PLUS\", \"SCRAM-SHA-1-PLUS\", \"SCRAM-SHA-256\", \"SCRAM-SHA-1\", \"PLAIN\"",
        ),
    ] {
        assert_eq!(problems(file, &[]), says);
    }
    assert_eq!(
        problems("", &["store.readers=0"]),
        "--set: store.readers = 0 is out of bounds: it takes 1 to 64 threads"
    );
}

#[test]
fn where_endpoints_are_is_a_url() {
    let says = "carillon.toml:1: push.service_url: it is `https://` and a host, with a port and a path if these are needed";
    assert_eq!(problems("push.service_url = 'push.example.com'", &[]), says);
}

#[test]
fn where_spans_go_is_a_url() {
    let says = "carillon.toml:1: otel.endpoint: it is a URL such as http://127.0.0.1:4318";
    assert_eq!(problems("otel.endpoint = '127.0.0.1:4318'", &[]), says);
}

#[test]
fn rules_of_links_name_the_one_to_change() {
    for (file, says) in [
        (
            "links.app_schemes = ['javascript']",
            "carillon.toml:1: links.app_schemes: `javascript` cannot be the scheme of an app: small letters, digits, `+`, `-` and `.`, and none that browsers act on",
        ),
        (
            "links.app_schemes = ['MyApp']",
            "carillon.toml:1: links.app_schemes: `MyApp` cannot be the scheme of an app: small letters, digits, `+`, `-` and `.`, and none that browsers act on",
        ),
        (
            "links.public_targets = ['a b']",
            "carillon.toml:1: links.public_targets: `a b` is not the name of a host",
        ),
        (
            "links.hosts = ['go.example.com']",
            "carillon.toml:1: links.hosts: `go.example.com` has to be HOST=DOMAIN, such as `go.example.com=example.com`",
        ),
        (
            "links.public = true",
            "carillon.toml:1: links.public_targets: it needs the hosts that links of people without a key may lead to, because links.public is true",
        ),
    ] {
        assert_eq!(problems(file, &[]), says);
    }
}

#[test]
fn rules_between_settings_name_the_one_to_change() {
    for (file, says) in [
        ("http.port = 5222", "carillon.toml:1: http.port: port 5222 is that of c2s.port already"),
        ("light.port = 5222", "carillon.toml:1: light.port: port 5222 is that of c2s.port already"),
        (
            "light.port = 'on'",
            "carillon.toml:1: light.port = 'on' has the wrong type: it takes a whole number from 0 to 65535, or \"off\"",
        ),
        (
            "c2s.enabled = false\nc2s_tls.enabled = false\nwebsocket.enabled = false",
            "carillon.toml:1: c2s.enabled: one of c2s.enabled, c2s_tls.enabled and websocket.enabled has to be true",
        ),
        ("listen.address = []", "carillon.toml:1: listen.address: it needs at least one address"),
        (
            "listen.proxy_protocol = ['c2s']",
            "carillon.toml:1: listen.trusted_proxies: it needs the addresses of the proxies, because listen.proxy_protocol is set",
        ),
        (
            "limits.stanza_bytes = 12_000",
            "carillon.toml:1: limits.stanza_bytes_before_auth: 16384 is over limits.stanza_bytes, which is 12000",
        ),
        ("tls.key = 'k'", "carillon.toml:1: tls.certificate: it has to be set, because tls.key is"),
        ("tls.certificate = 'c'", "carillon.toml:1: tls.key: it has to be set, because tls.certificate is"),
        ("websocket.path = 'ws'", "carillon.toml:1: websocket.path: it has to begin with /"),
        (
            "http.address = ['0.0.0.0']\nmatches.demo = true",
            "carillon.toml:2: matches.demo: it is for nodes whose HTTP side only this machine reaches: set it to false, or \
             http.address to 127.0.0.1",
        ),
        (
            "links.hosts = ['f.example=example.com']\nupload.url = 'https://F.example'",
            "carillon.toml:2: upload.url: `f.example` is a host of links.hosts, and it has to be one for files alone",
        ),
        (
            "upload.url = 'https://f.example'\nupload.account_bytes = '1MiB'",
            "carillon.toml:2: upload.account_bytes: it has to be as large as upload.file_bytes",
        ),
        (
            "upload.url = 'https://f.example'\nupload.types = ['png']",
            "carillon.toml:2: upload.types: `png` has to be a media type, such as `image/png` or `image/*`",
        ),
        (
            "upload.url = 'upload.example.com'",
            "carillon.toml:1: upload.url: it is `https://`, a host, and a port if that is needed",
        ),
        ("auth.mechanisms = []", "carillon.toml:1: auth.mechanisms: it needs at least one"),
    ] {
        assert_eq!(problems(file, &[]), says);
    }
    let names: Vec<&str> = carillon_core::pipeline::ORDER.iter().map(|feature| feature.name).collect();
    assert_eq!(
        problems("features.disabled = ['csi', 'telepathy']", &[]),
        format!(
            "carillon.toml:1: features.disabled: there is no feature telepathy; there are {}",
            names.join(", ")
        )
    );
    loaded("c2s.port = 0\nhttp.port = 0\nwebsocket.port = 8080\nwebsocket.enabled = true", &[]);
    loaded("c2s.enabled = false\nhttp.port = 5222", &[]);
}

#[test]
fn rules_about_certificates_name_the_one_to_set() {
    for (file, says) in [
        (
            "https.client_required = true",
            "carillon.toml:1: https.client_ca: it has to be set, because https.client_required is",
        ),
        (
            "cell.nats_key = 'k'",
            "carillon.toml:1: cell.nats_certificate: it has to be set, because cell.nats_key is",
        ),
        (
            "cell.nats_certificate = 'c'",
            "carillon.toml:1: cell.nats_key: it has to be set, because cell.nats_certificate is",
        ),
        (
            "cell.redis_key = 'k'",
            "carillon.toml:1: cell.redis_certificate: it has to be set, because cell.redis_key is",
        ),
        (
            "cell.redis_certificate = 'c'",
            "carillon.toml:1: cell.redis_key: it has to be set, because cell.redis_certificate is",
        ),
    ] {
        assert_eq!(problems(file, &[]), says);
    }
}

#[test]
#[cfg(all(feature = "nats", feature = "postgres"))]
fn a_cell_needs_a_database_and_a_secret() {
    for (file, says) in [
        (
            "cell.nats = 'nats://a'\ncell.secret_file = 's'",
            "carillon.toml:1: store.url: it has to be set, because cell.nats is: the nodes of a cell share a PostgreSQL database",
        ),
        (
            "store.url = 'postgresql://a@b/c'\ncell.nats = 'nats://a'",
            "carillon.toml:2: cell.secret_file: it has to be set, because cell.nats is: the nodes of a cell share a secret",
        ),
    ] {
        assert_eq!(problems(file, &[]), says);
    }
    loaded("store.url = 'postgresql://a@b/c'\ncell.nats = 'nats://a'\ncell.secret_file = 's'", &[]);
}

#[test]
#[cfg(not(all(feature = "nats", feature = "postgres")))]
fn a_cell_needs_the_drivers() {
    assert_eq!(
        problems("cell.nats = 'nats://a'", &[]),
        "carillon.toml:1: cell.nats: this binary was built without NATS and PostgreSQL: build it with `--features nats,postgres`"
    );
}

#[test]
fn templates_of_pushes_are_tables() {
    let file = "[push.templates.chat]\ndomains = ['example.org']\ntitle = ['{sender} in {room}', '{sender}']\nbody = 'Psst'\n";
    let settings = loaded(file, &["push.templates.others.body=New message"]);
    let chat = &settings.push_templates["chat"];
    assert_eq!(
        (&*chat.domains, chat.title.len(), &*chat.body),
        (&["example.org".to_owned()][..], 2, &["Psst".to_owned()][..])
    );
    assert_eq!(settings.push_templates["others"].body, ["New message"]);
    for (file, message) in [
        (
            "[push.templates.a]\ntitle = '{sendr}'\n",
            "push.templates.a.title: `{sendr}`: there is no {sendr}; there are {account}",
        ),
        ("[push.templates.a]\nbody = ['x', '{']\n", "push.templates.a.body: `{`: a brace stands alone"),
        ("[push.templates.a]\nbody = 5\n", "a list of texts"),
        ("[push.templates.a]\nboddy = 'x'\n", "body"),
        ("[push.templates.'a b']\nbody = 'x'\n", "letters, digits"),
        (
            "[push.templates.a]\nbody = 'x'\n[push.templates.b]\nbody = 'y'\n",
            "push.templates.b.domains: two templates",
        ),
        ("[push.templates.a]\ndomains = ['a b']\nbody = 'x'\n", "push.templates.a.domains: a b is no domain"),
    ] {
        let said = problems(file, &[]);
        assert!(said.contains(message), "{said}");
    }
    let old = load(file, &[]).expect("valid");
    let reloaded = old.adopt(load(file, &["push.templates.chat.body=Boo"]).expect("valid"));
    assert_eq!((reloaded.changed, reloaded.needs_restart), (vec!["push.templates"], vec![]));
    assert_eq!(reloaded.config.settings.push_templates["chat"].body, ["Boo"]);
}

#[test]
fn apps_that_are_woken_are_tables() {
    let file = "[push.apps.chat]\nservice = 'apns'\ntopic = 'com.example.chat'\nkey_file = 'a.p8'\nkey_id = 'K'\nteam_id = 'T'\n\
                domains = ['example.org']\n\
                [push.apps.droid]\nservice = 'fcm'\nservice_account_file = 'a.json'\n";
    let apps = loaded(file, &["push.apps.chat.sandbox=true"]).push_apps;
    let chat = &apps["chat"];
    assert_eq!(
        (&*chat.topic, chat.sandbox, &*chat.domains),
        ("com.example.chat", true, &["example.org".to_owned()][..])
    );
    assert_eq!(apps["droid"].service, carillon_core::model::AppService::Fcm);
    for (file, message) in [
        ("[push.apps.a]\nservice = 'apns'\n", "push.apps.a.topic"),
        ("[push.apps.a]\nservice = 'fcm'\n", "push.apps.a.service_account_file"),
        ("[push.apps.a]\nservice = 'gcm'\n", "one of \"apns\", \"fcm\""),
        ("[push.apps.a]\ntopik = 'x'\n", "topic"),
        ("[push.apps.'a b']\nservice = 'fcm'\n", "letters, digits"),
        (
            "[push.apps.a]\nservice = 'fcm'\nservice_account_file = 'a'\nurl = 'http://a.example'\n",
            "https://",
        ),
    ] {
        let said = problems(file, &[]);
        assert!(said.contains(message), "{said}");
    }
    let old = load(file, &[]).expect("valid");
    let reloaded = old.adopt(load(file, &["push.apps.chat.topic=other"]).expect("valid"));
    assert_eq!((reloaded.changed, reloaded.needs_restart), (vec!["push.apps"], vec![]));
    assert_eq!(reloaded.config.settings.push_apps["chat"].topic, "other");
}

#[test]
fn every_problem_is_reported() {
    assert_eq!(
        problems("colour = 1\n[c2s]\nport = 70000\nenabled = 'yes'", &["shards"]),
        "--set shards: write KEY=VALUE\n\
         carillon.toml:1: there is no setting colour\n\
         carillon.toml:3: c2s.port = 70000 is out of bounds: it takes a whole number from 0 to 65535\n\
         carillon.toml:4: c2s.enabled = 'yes' has the wrong type: it takes true or false"
    );
}

#[test]
fn what_is_not_toml_and_what_cannot_be_read() {
    assert_eq!(
        problems("[c2s]\nport = \n", &[]),
        "carillon.toml:2: not TOML: string values must be quoted, expected literal string"
    );
    assert!(
        problems("shards = 1\nshards = 2\n", &[]).starts_with("carillon.toml:2: not TOML: duplicate key")
    );
    let source = Source { file: Some(PathBuf::from("/no/such/file")), ..Source::default() };
    assert_eq!(
        Config::load(&source).expect_err("not there").to_string(),
        "/no/such/file: No such file or directory (os error 2)"
    );
}

#[test]
fn the_benchmark_profile_lifts_what_is_at_its_default() {
    let file = "[limits]\nprofile = 'benchmark'\nstanzas_per_second = 7\nmax_connections = 1_000_000";
    let config = load(file, &[]).expect("valid");
    let (bounds, limits) = (&config.settings.server.bounds, &config.settings.core.limits);
    assert_eq!((bounds.connections_per_address, bounds.connections), (0, 0));
    assert_eq!((limits.rates.stanzas_per_second, limits.pending_notifications), (7, 1_000_000));
    assert_eq!((limits.depth, limits.auth_attempts), (64, 5));
    let lifted = Setting::named("limits.max_connections").expect("there is one");
    assert_eq!(*config.origin(lifted), Origin::Profile);
}

#[test]
fn a_reload_changes_what_is_live_and_names_what_is_not() {
    let before = load("log.level = 'info'\nc2s.port = 1000\nshards = 4", &[]).expect("valid");
    let after =
        load("log.level = 'debug'\nc2s.port = 2000\nlimits.depth = 32\nshards = 4", &[]).expect("valid");
    let reloaded = before.adopt(after);
    assert_eq!(reloaded.changed, ["limits.depth", "log.level"]);
    assert_eq!(reloaded.needs_restart, ["c2s.port"]);
    let s = &reloaded.config.settings;
    assert_eq!((s.log.level, s.core.limits.depth, s.server.c2s.port), (LogLevel::Debug, 32, 1000));
}

#[test]
fn a_reload_reads_the_same_source_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("carillon.toml");
    std::fs::write(&file, "log.level = 'info'").expect("written");
    let overrides = vec!["domain=example.org".to_owned()];
    let source = Source { file: Some(file.clone()), overrides, data_dir: None };
    let config = Config::load(&source).expect("valid");

    std::fs::write(&file, "log.level = 'trace'").expect("written");
    let reloaded = config.reload().expect("valid");
    assert_eq!((reloaded.changed, reloaded.needs_restart), (vec!["log.level"], vec![]));
    assert_eq!(reloaded.config.settings.node.domain, "example.org");

    std::fs::write(&file, "log.level = 'loud'").expect("written");
    assert_eq!(
        config.reload().expect_err("invalid").to_string(),
        format!(
            "{}:1: log.level = 'loud' is out of bounds: it takes one of \"error\", \"warn\", \"info\", \"debug\", \
             \"trace\"",
            file.display()
        )
    );
}

#[test]
fn the_sample_is_the_defaults() {
    let sample = print::sample();
    assert_eq!(loaded(&sample, &[]), Settings::default());
    let config = load(&sample, &[]).expect("valid");
    for setting in SETTINGS {
        assert_ne!(*config.origin(setting), Origin::Default, "{} is in the sample", setting.key);
    }
}

/// `cargo run -p carillon -- config manual > docs/book/configuration.md` makes it so.
#[test]
fn the_manual_is_up_to_date() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book/configuration.md");
    let written = std::fs::read_to_string(file).unwrap_or_default();
    assert!(written == print::manual(), "run: carillon config manual > docs/book/configuration.md");
}

#[test]
fn one_setting_explained() {
    let config = load("[limits]\nprofile = 'benchmark'\n[timeouts]\nauth_ms = '1m'", &[]).expect("valid");
    let explain = |key| print::explain(&config, Setting::named(key).expect("there is one"));
    assert_eq!(
        explain("timeouts.auth_ms"),
        "timeouts.auth_ms\n  \
           Time from the acceptance of a connection to the end of authentication, TLS included.\n\n  \
           value    60000 (1m)\n  \
           from     carillon.toml:4\n  \
           default  30000 (30s)\n  \
           takes    100 to 3600000 milliseconds (100ms to 1h), as a number or as text such as \"30s\"\n  \
           applied  by SIGHUP\n  \
           variable CARILLON_TIMEOUTS_AUTH_MS\n"
    );
    assert_eq!(
        explain("limits.offline_messages"),
        "limits.offline_messages\n  \
           Chat messages that are stored for one account while it is offline; further ones are answered with an error.\n\n  \
           value    1000000\n  \
           from     limits.profile\n  \
           default  1000\n           \
                    1000000 under limits.profile = \"benchmark\"\n  \
           takes    0 to 1000000 messages\n  \
           applied  by SIGHUP\n  \
           variable CARILLON_LIMITS_OFFLINE_MESSAGES\n"
    );
}

/// Also proves that the kind of each setting fits its type: what does not fit would panic.
#[test]
fn every_setting_takes_its_default_and_its_bounds() {
    let mut settings = Settings::default();
    for setting in SETTINGS {
        let default = setting.default();
        let written = format!("{} = {default}", setting.key);
        assert_eq!(loaded(&written, &[]), Settings::default(), "{written}");
        let bounds = match setting.kind {
            Kind::Count { min, max, .. } | Kind::Milliseconds { min, max } | Kind::Bytes { min, max } => {
                vec![Value::Number(min), Value::Number(max)]
            }
            Kind::PortOrOff => vec![Value::Number(0), Value::Number(65_535), Value::Text("off".to_owned())],
            Kind::Choice(words) => words.iter().map(|&w| Value::Text(w.to_owned())).collect(),
            _ => vec![default],
        };
        for value in bounds {
            setting.put(&mut settings, value.clone());
            assert_eq!(setting.value(&settings), value, "{}", setting.key);
        }
        if let (Some(lifted), Kind::Count { min, max, .. } | Kind::Bytes { min, max }) =
            (setting.benchmark, setting.kind)
        {
            assert!((min..=max).contains(&lifted), "{}", setting.key);
        }
    }
}

#[test]
fn each_setting_has_a_field_of_its_own() {
    for setting in SETTINGS {
        let mut settings = Settings::default();
        setting.put(&mut settings, another(setting));
        let changed = SETTINGS.iter().filter(|s| s.value(&settings) != s.default());
        assert_eq!(changed.map(|s| s.key).collect::<Vec<_>>(), [setting.key]);
    }
}

/// A value that is not the default.
fn another(setting: &Setting) -> Value {
    let word = |word: &str| Value::Text(word.to_owned());
    let list = |word: &str| Value::List(vec![word.to_owned()]);
    match (setting.kind, setting.default()) {
        (Kind::Switch, default) => Value::Switch(default == Value::Switch(false)),
        (
            Kind::Count { min, max, .. } | Kind::Milliseconds { min, max } | Kind::Bytes { min, max },
            default,
        ) => Value::Number(if default == Value::Number(min) { max } else { min }),
        (Kind::PortOrOff, _) => Value::Number(0),
        (Kind::Text { .. } | Kind::Names, Value::Text(_)) => word("another"),
        (Kind::Choice(words), default) => {
            words.iter().map(|w| word(w)).find(|w| *w != default).expect("a choice of one is none")
        }
        (Kind::Choices(words), _) => list(words[0]),
        (Kind::Addresses | Kind::Networks, _) => list("192.0.2.1"),
        (Kind::Names | Kind::Texts | Kind::Text { .. }, _) => list("another"),
    }
}

#[test]
fn keys_are_named_by_the_rules() {
    let mut seen = std::collections::BTreeSet::new();
    for setting in SETTINGS {
        assert!(seen.insert(setting.key), "{} is declared twice", setting.key);
        assert!(setting.about().ends_with('.'), "{} is about a sentence", setting.key);
        let is_time = matches!(setting.kind, Kind::Milliseconds { .. });
        assert_eq!(is_time, setting.key.ends_with("_ms"), "{}", setting.key);
    }
}
