//! Certificates, found and made.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use carillon_server::tls::{Settings, SettingsError};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn a_self_signed_certificate_is_made_once() {
    let dir = tempfile::tempdir().unwrap();
    let make = |wanted: &[&str]| Settings::self_signed_in(dir.path(), &names(wanted)).unwrap();
    let file = |name: &str| dir.path().join(name);
    let first = make(&["chat.example", "Push.Example", "127.0.0.1", "::1"]);
    assert_eq!(std::fs::metadata(file("self-signed.key")).unwrap().permissions().mode() & 0o777, 0o600);
    let left = first.not_after().duration_since(SystemTime::now()).unwrap();
    assert!(left > 390 * DAY && left < 400 * DAY);

    let again = make(&["push.example", "127.0.0.1"]);
    assert_eq!(again.server_end_point(None), first.server_end_point(None));
    let key = std::fs::read(file("self-signed.key")).unwrap();
    let wider = make(&["push.example", "new.example"]);
    assert_ne!(wider.server_end_point(None), first.server_end_point(None));
    assert_eq!(std::fs::read(file("self-signed.key")).unwrap(), key, "the key stays");

    // A certificate that is for another key, or none at all, is replaced.
    std::fs::remove_file(file("self-signed.key")).unwrap();
    let rekeyed = make(&["push.example"]);
    assert_ne!(rekeyed.server_end_point(None), wider.server_end_point(None));
    std::fs::write(file("self-signed.crt"), "nonsense").unwrap();
    make(&["push.example"]);
    // A key is never replaced: somebody may have pinned it.
    std::fs::write(file("self-signed.key"), "nonsense").unwrap();
    assert!(Settings::self_signed_in(dir.path(), &names(&["push.example"])).is_err());
}

#[test]
fn what_cannot_be_a_certificate_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let make = |wanted: &[&str]| Settings::self_signed_in(dir.path(), &names(wanted));
    assert!(matches!(make(&[]), Err(SettingsError::NoNames)));
    assert!(matches!(make(&["bücher.example"]), Err(SettingsError::Generate(_))));
    assert!(Settings::self_signed_in(&dir.path().join("absent"), &names(&["a.example"])).is_err());
    let (_, cert, key) = super::support::server();
    assert!(matches!(Settings::from_pem(b"", key), Err(SettingsError::Certificate(_))));
    assert!(matches!(Settings::from_pem(cert, b""), Err(SettingsError::Key(_))));
    let other_dir = tempfile::tempdir().unwrap();
    Settings::self_signed_in(other_dir.path(), &names(&["a.example"])).unwrap();
    let other_key = std::fs::read(other_dir.path().join("self-signed.key")).unwrap();
    assert!(matches!(Settings::from_pem(cert, &other_key), Err(SettingsError::Unusable(_))));
    assert!(matches!(
        Settings::load(Path::new("/nonexistent.crt"), Path::new("/nonexistent.key")),
        Err(SettingsError::File { .. })
    ));
}

/// RFC 5929 §4.1: the signature's own hash, but SHA-256 for the weak ones. OpenSSL makes the certificates and hashes.
#[test]
fn the_end_point_hash_follows_the_signature() {
    if Command::new("openssl").arg("version").output().is_err() {
        println!("skipped: there is no openssl");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let rsa: &[&str] = &["rsa:2048"];
    let ec: &[&str] = &["ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
    let pss: &[&str] = &["rsa:2048", "-sigopt", "rsa_padding_mode:pss"];
    for (key, signed_by, hashed_by) in [
        (rsa, "-sha1", Some("-sha256")),
        (rsa, "-sha256", Some("-sha256")),
        (rsa, "-sha384", Some("-sha384")),
        (rsa, "-sha512", Some("-sha512")),
        (pss, "-sha384", Some("-sha384")),
        (pss, "-sha1", Some("-sha256")),
        (ec, "-sha256", Some("-sha256")),
        (ec, "-sha384", Some("-sha384")),
        (&["ed25519"], "-sha256", None),
    ] {
        let mut command = Command::new("openssl");
        command.current_dir(dir.path()).args(["req", "-x509", "-nodes", "-subj", "/CN=a.example"]);
        command.args(["-keyout", "key.pem", "-out", "cert.pem", signed_by, "-newkey"]).args(key);
        assert!(command.output().unwrap().status.success(), "{command:?}");
        let settings = Settings::load(&dir.path().join("cert.pem"), &dir.path().join("key.pem")).unwrap();
        let expected = hashed_by.map(|hash| hash_of_der(dir.path(), hash));
        assert_eq!(
            settings.server_end_point(None).map(|hash| &**hash),
            expected.as_deref(),
            "{key:?} {signed_by}"
        );
    }
}

fn hash_of_der(dir: &Path, hash: &str) -> Vec<u8> {
    let run = |args: &[&str]| Command::new("openssl").current_dir(dir).args(args).output().unwrap();
    assert!(run(&["x509", "-in", "cert.pem", "-outform", "DER", "-out", "cert.der"]).status.success());
    run(&["dgst", hash, "-binary", "cert.der"]).stdout
}
