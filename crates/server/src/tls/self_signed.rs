//! The self-signed certificate that a server uses if it is given none.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::certificate;
use super::settings_error::{SettingsError, read};

/// Returns the certificate and key of `data_dir`, both as PEM, and makes what is missing or no longer fits.
///
/// Each file is replaced as a whole, the key first and only once, so that a crash in between leaves a pair that either
/// fits or is recognised as not fitting.
pub(super) fn provide(
    data_dir: &Path,
    names: &[String],
    now: SystemTime,
) -> Result<(Vec<u8>, Vec<u8>), SettingsError> {
    let names: Vec<String> = names.iter().map(|name| name.to_ascii_lowercase()).collect();
    let Some(first) = names.first() else {
        return Err(SettingsError::NoNames);
    };
    let (cert_path, key_path) = (data_dir.join(CERT_FILE), data_dir.join(KEY_FILE));
    let key_pem = match key_path.exists() {
        true => read(&key_path)?,
        false => {
            let pem = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?.serialize_pem();
            replace(&key_path, pem.as_bytes(), 0o600)?;
            pem.into_bytes()
        }
    };
    let key = KeyPair::from_pem(&String::from_utf8_lossy(&key_pem))?;
    if cert_path.exists() {
        let cert_pem = read(&cert_path)?;
        if fits(&cert_pem, &key, &names, now) {
            return Ok((cert_pem, key_pem));
        }
    }
    let cert_pem = make(first, &names, &key, now)?.into_bytes();
    replace(&cert_path, &cert_pem, 0o644)?;
    Ok((cert_pem, key_pem))
}

/// Whether a certificate is for this key and all these names, and is valid for a while.
fn fits(pem: &[u8], key: &KeyPair, names: &[String], now: SystemTime) -> bool {
    let Ok(der) = CertificateDer::from_pem_slice(pem) else {
        return false;
    };
    let Ok(leaf) = certificate::read(&der) else {
        return false;
    };
    let public_key = key.public_key_raw();
    leaf.not_after > now + RENEW_BEFORE
        && names.iter().all(|name| leaf.names.contains(name))
        // The certificate contains the key's bytes unchanged (RFC 5480 §2.2).
        && der.windows(public_key.len()).any(|window| window == public_key)
}

fn make(first: &str, names: &[String], key: &KeyPair, now: SystemTime) -> Result<String, SettingsError> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, first);
    params.not_before = (now - CLOCK_SKEW).into();
    params.not_after = (now + VALID_FOR).into();
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    Ok(params.self_signed(key)?.pem())
}

/// Replaces a file by one with this content and mode. A reader finds either the old or the new one.
fn replace(path: &Path, content: &[u8], mode: u32) -> Result<(), SettingsError> {
    let temporary = path.with_extension("new");
    let written = (|| {
        // The mode is set only when a file is created.
        match std::fs::remove_file(&temporary) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary)?;
        file.write_all(content)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)
    })();
    written.map_err(|source| SettingsError::File { path: path.to_owned(), source })
}

const CERT_FILE: &str = "self-signed.crt";
const KEY_FILE: &str = "self-signed.key";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest validity that clients with a limit accept.
const VALID_FOR: Duration = Duration::from_secs(397 * DAY.as_secs());
/// A start makes a new certificate if less than this is left.
const RENEW_BEFORE: Duration = Duration::from_secs(30 * DAY.as_secs());
/// How far a client's clock may be slow.
const CLOCK_SKEW: Duration = DAY;
