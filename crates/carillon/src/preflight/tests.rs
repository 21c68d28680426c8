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
