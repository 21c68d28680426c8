//! Worlds in which something is wrong, each told with its remedy.

use super::*;
use crate::config::Source;
use rcgen::{CertificateParams, KeyPair};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// What is found with these settings, in a world where nothing else is wrong.
fn found(folder: &Path, settings: &[(&str, &str)]) -> Vec<String> {
    let mut overrides = vec![format!("data_dir={}", folder.join("data").display())];
    overrides.extend(["c2s", "c2s_tls", "websocket", "http"].map(|listener| format!("{listener}.port=0")));
    overrides.extend(settings.iter().map(|(key, value)| format!("{key}={value}")));
    let config = Config::load(&Source { overrides, ..Source::default() }).expect("valid");
    inspect(&config, Purpose::Start).iter().map(Finding::to_string).collect()
}

/// The severity and the setting of what is found in production, but for the user that runs the tests, which may be root.
fn found_in_production(settings: &[(&str, &str)]) -> Vec<String> {
    let mut overrides: Vec<String> =
        ["c2s", "c2s_tls", "websocket", "http"].map(|listener| format!("{listener}.port=0")).into();
    overrides.extend(settings.iter().map(|(key, value)| format!("{key}={value}")));
    let config = Config::load(&Source { overrides, ..Source::default() }).expect("valid");
    let found = inspect(&config, Purpose::Production);
    let found = found.iter().filter(|finding| !finding.what.contains("the user root"));
    assert!(found.clone().all(|finding| !finding.remedy.is_empty()), "each has a remedy");
    let short = |finding: &Finding| finding.to_string().split(": ").take(2).collect::<Vec<_>>().join(" ");
    found.map(short).collect()
}

#[test]
fn where_nothing_is_wrong_nothing_is_found_and_nothing_is_left_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    assert_eq!(found(folder.path(), &[]), [""; 0]);
    assert_eq!(std::fs::read_dir(folder.path()).expect("readable").count(), 0);
}

#[test]
fn a_port_in_use_is_named_with_its_setting() {
    let folder = tempfile::tempdir().expect("a folder");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("an address").port();
    for setting in ["c2s.port", "c2s_tls.port", "websocket.port", "light.port", "http.port"] {
        assert_eq!(
            found(folder.path(), &[(setting, &port.to_string())]),
            [format!(
                "error: {setting}: 127.0.0.1:{port} is in use by another program (`ss -ltnp 'sport = :{port}'` names it); \
                 end that program, or set {setting} to another port"
            )]
        );
    }
    // TEST-NET-1 (RFC 5737) is nobody's.
    let nowhere = found(folder.path(), &[("http.address", "192.0.2.1")]);
    assert_eq!(
        nowhere[0],
        "error: http.port: this machine has no address 192.0.2.1; take it out of http.address or listen.address"
    );
}

#[test]
fn a_folder_that_cannot_be_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "").expect("written");
    let inside = file.join("data").display().to_string();
    let found = |path: &str| found(folder.path(), &[("data_dir", path)]);
    assert_eq!(
        found(&file.display().to_string()),
        [format!("error: data_dir: {} is not a folder; name a folder", file.display())]
    );
    assert_eq!(
        found(&inside),
        [format!(
            "error: data_dir: {inside} cannot be written: Not a directory (os error 20); set data_dir to a folder that can \
             be written"
        )]
    );
}

#[test]
fn what_others_reach_without_tls_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let warned = |settings: &[(&str, &str)]| {
        let found = found(folder.path(), settings);
        let setting = |finding: &String| finding.split(": ").nth(1).unwrap_or_default().to_owned();
        assert!(
            found.iter().all(|finding| finding.starts_with("warning: ") && finding.contains("; ")),
            "{found:?}"
        );
        found.iter().map(setting).collect::<Vec<_>>()
    };
    let everywhere = ("listen.address", "0.0.0.0");
    // As it is without a setting, and with TLS for all but what listens on loopback.
    assert_eq!(warned(&[("light.port", "0"), ("listen.address", "127.0.0.1,::1")]), [""; 0]);
    assert_eq!(warned(&[everywhere, ("websocket.tls", "true")]), [""; 0]);
    assert_eq!(warned(&[everywhere, ("websocket.enabled", "false")]), [""; 0]);
    // Each by its name.
    assert_eq!(warned(&[everywhere]), ["websocket.tls"]);
    assert_eq!(warned(&[everywhere, ("listen.trusted_proxies", "10.0.0.0/8")]), [""; 0]);
    assert_eq!(warned(&[everywhere, ("websocket.tls", "true"), ("light.port", "0")]), ["light.tls"]);
    assert_eq!(warned(&[("http.address", "0.0.0.0")]), ["http.address", "http.metrics_key"]);
    assert_eq!(warned(&[("http.address", "0.0.0.0"), ("http.metrics_key", "true")]), ["http.address"]);
    let all = warned(&[everywhere, ("http.address", ""), ("light.port", "0")]);
    assert_eq!(all, ["http.address", "http.metrics_key", "websocket.tls", "light.tls"]);
}

#[test]
fn what_a_node_that_serves_the_public_should_not_have_is_named() {
    let folder = tempfile::tempdir_in(".").expect("a folder on a disk");
    let path = folder.path().canonicalize().expect("a path");
    let data = path.join("data");
    std::fs::create_dir(&data).expect("made");
    let mode = |file: &Path, mode| {
        std::fs::set_permissions(file, PermissionsExt::from_mode(mode)).expect("changed");
    };
    mode(&data, 0o700);
    let (certificate, key) = certificate(&path, &["example.org"], 90);
    let data = data.display().to_string();
    let with = |changes: &[(&str, &str)]| {
        let good = [
            ("domain", "example.org"),
            ("data_dir", &*data),
            ("tls.certificate", &*certificate),
            ("tls.key", &*key),
            ("listen.address", "0.0.0.0"),
            ("websocket.tls", "true"),
            ("event_log.enabled", "true"),
        ];
        let kept = good.iter().filter(|(key, _)| changes.iter().all(|(changed, _)| changed != key));
        found_in_production(&kept.chain(changes).copied().collect::<Vec<_>>())
    };
    assert_eq!(with(&[]), [""; 0]);
    // What is an error here and a warning elsewhere.
    assert_eq!(with(&[("websocket.tls", "false")]), ["error websocket.tls"]);
    let http = with(&[("http.address", "0.0.0.0"), ("http.metrics_key", "true")]);
    assert_eq!(http, ["error http.address"]);
    mode(Path::new(&key), 0o644);
    assert_eq!(with(&[]), ["error tls.key"]);
    mode(Path::new(&key), 0o600);
    // What is looked for here alone.
    assert_eq!(with(&[("tls.certificate", ""), ("tls.key", "")]), ["error tls.certificate"]);
    assert_eq!(
        with(&[("domain", "localhost"), ("tls.certificate", ""), ("tls.key", "")]),
        ["error domain", "error tls.certificate"]
    );
    assert_eq!(with(&[("data_dir", "./no-such-folder")]), ["error data_dir"]);
    mode(Path::new(&data), 0o755);
    assert_eq!(with(&[]), ["warning data_dir"]);
    mode(Path::new(&data), 0o700);
    assert_eq!(with(&[("data_dir", "/dev/shm")])[0], "error data_dir");
    assert_eq!(with(&[("listen.address", "127.0.0.1")]), ["warning listen.address"]);
    assert_eq!(with(&[("limits.profile", "benchmark")]), ["error limits.profile"]);
    assert_eq!(with(&[("limits.stanzas_per_second", "0")]), ["warning limits.stanzas_per_second"]);
    assert_eq!(with(&[("core_dumps", "true")]), ["error core_dumps"]);
    assert_eq!(with(&[("registration.in_band", "true")]), ["warning registration.in_band"]);
    assert_eq!(with(&[("webhooks.allow_addresses", "10.0.0.0/8")]), ["warning webhooks.allow_addresses"]);
    assert_eq!(with(&[("push.allow_addresses", "10.0.0.0/8")]), ["warning push.allow_addresses"]);
    assert_eq!(with(&[("matches.demo", "true")]), ["error matches.demo"]);
    assert_eq!(with(&[("event_log.enabled", "false")]), ["warning event_log.enabled"]);
    // A port of HTTP with TLS is no finding, but for the figures that anybody reads there.
    let metrics = with(&[("https.port", "0"), ("https.address", "0.0.0.0")]);
    assert_eq!(metrics, ["error http.metrics_key"]);
}

#[test]
fn files_of_apps_hold_their_keys_and_are_for_the_node_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let (certificate, key) = certificate(folder.path(), &["example.org"], 90);
    let found = |file: &str, sandbox: &str| {
        let settings = [
            ("push.apps.a.topic", "com.example"),
            ("push.apps.a.key_id", "K"),
            ("push.apps.a.team_id", "T"),
            ("push.apps.a.key_file", file),
            ("push.apps.a.sandbox", sandbox),
        ];
        let found = found_in_production(&settings).into_iter();
        found.filter(|finding| finding.contains("push")).collect::<Vec<_>>()
    };
    assert_eq!(found(&key, "false"), [""; 0]);
    assert_eq!(found(&key, "true"), ["warning push.apps"]);
    let mode = |mode| std::fs::set_permissions(&key, PermissionsExt::from_mode(mode)).expect("changed");
    mode(0o644);
    assert_eq!(found(&key, "false"), ["error push.apps"]);
    mode(0o600);
    assert_eq!(found(&certificate, "false")[0], "error push.apps", "it holds no key");
}

/// A certificate for `names` and its key, as files.
fn certificate(folder: &Path, names: &[&str], valid_days: i64) -> (String, String) {
    let key = KeyPair::generate().expect("a key");
    let mut params =
        CertificateParams::new(names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>()).expect("names");
    let day = Duration::from_secs(24 * 60 * 60);
    let now = SystemTime::now();
    params.not_before = (now - 100 * day).into();
    params.not_after = match valid_days {
        0.. => now + day * valid_days as u32,
        _ => now - day * valid_days.unsigned_abs() as u32,
    }
    .into();
    let files = (folder.join("a.pem"), folder.join("a.key"));
    std::fs::write(&files.0, params.self_signed(&key).expect("signed").pem()).expect("written");
    std::fs::write(&files.1, key.serialize_pem()).expect("written");
    std::fs::set_permissions(&files.1, PermissionsExt::from_mode(0o600)).expect("changed");
    (files.0.display().to_string(), files.1.display().to_string())
}

#[test]
fn a_certificate_that_clients_refuse_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let found = |(certificate, key): &(String, String)| {
        let settings = [("domain", "example.org"), ("tls.certificate", &**certificate), ("tls.key", &**key)];
        found(folder.path(), &settings).join("\n")
    };
    assert_eq!(found(&certificate(folder.path(), &["example.org"], 90)), "");
    let wildcard = found(&certificate(folder.path(), &["*.example.org"], 90));
    assert_eq!(
        wildcard,
        "error: tls.certificate: the certificate is for *.example.org, not for the domain example.org: its clients refuse \
         it; have a certificate issued whose subjectAltName has example.org too"
    );
    assert!(found(&certificate(folder.path(), &["example.org"], -1)).contains(" expired on 20"));
    let soon = found(&certificate(folder.path(), &["example.org"], 3));
    assert!(soon.starts_with("warning: ") && soon.contains(" expires on 20"), "{soon}");

    let good = certificate(folder.path(), &["example.org"], 90);
    std::fs::set_permissions(&good.1, PermissionsExt::from_mode(0o644)).expect("changed");
    assert!(found(&good).starts_with("warning: tls.key: every user of this machine can read "));

    let other = KeyPair::generate().expect("a key").serialize_pem();
    std::fs::write(&good.1, other).expect("written");
    assert!(found(&good).contains("do not go together"), "{}", found(&good));
    std::fs::write(&good.1, "nothing").expect("written");
    assert!(found(&good).starts_with("error: tls.key: "), "{}", found(&good));
    let missing = (good.0, folder.path().join("missing").display().to_string());
    let missing = found(&missing);
    assert!(missing.starts_with("error: tls.key: ") && missing.contains("No such file"), "{missing}");
}
