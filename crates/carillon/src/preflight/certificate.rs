//! Whether clients will take the certificates: readable, of their keys, for the domains, and today.

use super::Finding;
use crate::config::Settings;
use carillon_core::model::UnixMs;
use carillon_server::tls::{self, SettingsError};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Time left at which somebody has to be told.
const SOON: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// What is wrong with the configured certificates. The self-signed one is made to fit.
pub(super) fn inspect(settings: &Settings) -> Vec<Finding> {
    let (node, mut findings) = (&settings.node, Vec::new());
    let mut all = None;
    if let (Some(certificate), Some(key)) = (&node.certificate, &node.certificate_key) {
        all = each(certificate, key, &mut findings);
    }
    let files = node.certificates.as_ref().map(|folder| tls::certificate_files(folder));
    match files {
        None => {}
        Some(Err(error)) => {
            let remedy = "name a folder that the user that runs the node can read";
            findings.push(Finding::error("tls.certificates", error.to_string(), remedy));
        }
        Some(Ok(files)) => {
            let usable: Vec<_> = files
                .into_iter()
                .filter(|(certificate, key)| each(certificate, key, &mut findings).is_some())
                .collect();
            // All of them can be read.
            all = all.and_then(|own| own.with_certificates(&usable).ok());
        }
    }
    findings.extend(all.iter().flat_map(|all| uncovered(all, &[node.domain.as_str()])));
    findings
}

/// Reads a certificate, and adds what is wrong with it.
fn each(certificate: &Path, key: &Path, findings: &mut Vec<Finding>) -> Option<tls::Settings> {
    match tls::Settings::load(certificate, key) {
        Err(error) => {
            findings.push(unusable(certificate, key, &error));
            None
        }
        Ok(loaded) => {
            findings.extend(dates(&loaded, certificate, SystemTime::now()));
            findings.extend(exposed(key));
            Some(loaded)
        }
    }
}

/// The domains that no certificate names: their clients refuse it.
pub fn uncovered(certificate: &tls::Settings, domains: &[&str]) -> Vec<Finding> {
    let missing = domains.iter().filter(|domain| !certificate.covers(domain));
    missing
        .map(|domain| {
            let names = certificate.names();
            let names = if names.is_empty() { "nobody".to_owned() } else { names.join(", ") };
            Finding::refused(
                "tls.certificate",
                format!("the certificate is for {names}, not for the domain {domain}: its clients refuse it"),
                format!("have a certificate issued whose subjectAltName has {domain} too"),
            )
        })
        .collect()
}

fn unusable(certificate: &Path, key: &Path, error: &SettingsError) -> Finding {
    let (certificate, key) = (certificate.display(), key.display());
    match error {
        SettingsError::File { path, source } => {
            let setting =
                if *path.display().to_string() == *key.to_string() { "tls.key" } else { "tls.certificate" };
            let remedy = match source.kind() {
                std::io::ErrorKind::PermissionDenied => "let the user that runs the node read it",
                _ => "name a PEM file",
            };
            Finding::error(setting, format!("{}: {source}", path.display()), remedy)
        }
        SettingsError::Key(_) => {
            Finding::error("tls.key", format!("{key}: {error}"), "name the PEM file of the private key")
        }
        SettingsError::Unusable(_) => Finding::error(
            "tls.key",
            format!("{key} and {certificate} do not go together: {error}"),
            "name the key that the certificate was issued for; the server's own certificate comes first in its file",
        ),
        _ => Finding::error(
            "tls.certificate",
            format!("{certificate}: {error}"),
            "name the PEM file of the certificate and its chain",
        ),
    }
}

fn dates(loaded: &tls::Settings, file: &Path, now: SystemTime) -> Option<Finding> {
    let file = file.display();
    let renew = "renew it";
    if loaded.not_after() <= now {
        let what = format!("{file} expired on {}: clients refuse it", day(loaded.not_after()));
        return Some(Finding::refused("tls.certificate", what, renew));
    }
    if loaded.not_before() > now {
        let what = format!("{file} is valid only from {} on: clients refuse it", day(loaded.not_before()));
        return Some(Finding::refused("tls.certificate", what, "is the clock of this machine right?"));
    }
    (loaded.not_after() <= now + SOON).then(|| {
        Finding::warning("tls.certificate", format!("{file} expires on {}", day(loaded.not_after())), renew)
    })
}

/// A key that every user of the machine can read.
fn exposed(key: &Path) -> Option<Finding> {
    let mode = std::fs::metadata(key).ok()?.permissions().mode();
    (mode & 0o004 != 0).then(|| {
        let key = key.display();
        Finding::warning(
            "tls.key",
            format!("every user of this machine can read {key}"),
            format!("run `chmod o-r {key}`"),
        )
    })
}

/// A day in UTC.
fn day(time: SystemTime) -> String {
    let ms = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    UnixMs(ms as u64).to_xmpp().split('T').next().unwrap_or_default().to_owned()
}
