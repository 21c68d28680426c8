//! Certificates of a test: its own authority, a server's for `localhost`, and a client's.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

/// Files in a folder that goes with them.
pub(crate) struct Certificates(TempDir);

impl Certificates {
    pub(crate) fn new() -> Certificates {
        let folder = tempfile::tempdir().expect("a folder");
        let key = || KeyPair::generate().expect("a key");
        let mut authority = CertificateParams::new([]).expect("no names");
        authority.distinguished_name.push(DnType::CommonName, "the authority of a test");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(authority, key()).expect("it is signed");
        let write =
            |name: &str, text: String| fs::write(folder.path().join(name), text).expect("it is written");
        write("authority", authority.pem());
        for name in ["server", "client"] {
            let (own, key) = (CertificateParams::new(["localhost".to_owned()]).expect("a name"), key());
            write(name, own.signed_by(&key, &authority).expect("it is signed").pem());
            write(&format!("{name}-key"), key.serialize_pem());
        }
        Certificates(folder)
    }

    /// One of `authority`, `server`, `server-key`, `client`, `client-key`.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The same as text.
    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_string_lossy().into_owned()
    }
}
