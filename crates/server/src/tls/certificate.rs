//! What the server needs to know about its own certificate.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aws_lc_rs::digest;
use x509_parser::der_parser::oid;
use x509_parser::der_parser::oid::Oid;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};
use x509_parser::signature_algorithm::SignatureAlgorithm;
use x509_parser::x509::AlgorithmIdentifier;

use super::settings_error::SettingsError;

/// Facts about an end-entity certificate.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    /// `tls-server-end-point` (RFC 5929 §4.1), where it is defined.
    pub(super) end_point: Option<Arc<[u8]>>,
    pub(super) not_before: SystemTime,
    pub(super) not_after: SystemTime,
    /// The host names, in lower case, and the IP addresses of its subjectAltName.
    pub(super) names: Vec<String>,
}

/// Reads a certificate.
pub(super) fn read(der: &[u8]) -> Result<Leaf, SettingsError> {
    let (_, certificate) =
        X509Certificate::from_der(der).map_err(|error| SettingsError::X509(error.to_string()))?;
    Ok(Leaf {
        end_point: end_point_hash(&certificate.signature_algorithm)
            .map(|algorithm| digest::digest(algorithm, der).as_ref().into()),
        not_before: time(certificate.validity().not_before.timestamp()),
        not_after: time(certificate.validity().not_after.timestamp()),
        names: names(&certificate),
    })
}

/// A time since 1970; an earlier one counts as 1970.
fn time(seconds: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.try_into().unwrap_or(0))
}

fn names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(alternative)) = certificate.subject_alternative_name() else {
        return Vec::new();
    };
    alternative.value.general_names.iter().filter_map(name).collect()
}

fn name(name: &GeneralName<'_>) -> Option<String> {
    match *name {
        GeneralName::DNSName(host) => Some(host.to_ascii_lowercase()),
        GeneralName::IPAddress(bytes) => {
            let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
            let v6 = <[u8; 16]>::try_from(bytes).map(IpAddr::from);
            v4.or(v6).ok().map(|address| address.to_string())
        }
        _ => None,
    }
}

/// The names of a certificate with their kinds, such as `dns:example.org`; none where it cannot be read.
pub(super) fn kinds_of_names(der: &[u8]) -> Vec<String> {
    let Ok((_, certificate)) = X509Certificate::from_der(der) else { return Vec::new() };
    let common = certificate.subject().iter_common_name();
    let common = common.filter_map(|name| name.as_str().ok()).map(|name| format!("cn:{name}"));
    let mut names: Vec<String> = common.collect();
    if let Ok(Some(alternative)) = certificate.subject_alternative_name() {
        names.extend(alternative.value.general_names.iter().filter_map(|general| match general {
            GeneralName::DNSName(_) => name(general).map(|host| format!("dns:{host}")),
            GeneralName::IPAddress(_) => name(general).map(|address| format!("ip:{address}")),
            GeneralName::URI(uri) => Some(format!("uri:{uri}")),
            GeneralName::RFC822Name(address) => Some(format!("email:{address}")),
            _ => None,
        }));
    }
    names
}

impl Leaf {
    /// Whether the certificate is for a host: by its name, or by a wildcard in the place of its first label (RFC 6125 §6.4.3).
    pub(super) fn covers(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let parent = host.split_once('.').map(|(_, parent)| parent);
        self.names
            .iter()
            .any(|name| *name == host || parent.is_some_and(|parent| name.strip_prefix("*.") == Some(parent)))
    }
}

/// The hash function of the certificate's signature, with SHA-256 in the place of MD5 and SHA-1 (RFC 5929 §4.1).
fn end_point_hash(signature: &AlgorithmIdentifier<'_>) -> Option<&'static digest::Algorithm> {
    let known = |identifier: &Oid<'_>| {
        HASHES.iter().find(|(hashed_by, _)| hashed_by == identifier).map(|(_, algorithm)| *algorithm)
    };
    match SignatureAlgorithm::try_from(signature) {
        // Here the hash is a parameter (RFC 4055 §3.1).
        Ok(SignatureAlgorithm::RSASSA_PSS(parameters)) => known(parameters.hash_algorithm_oid()),
        _ => known(&signature.algorithm),
    }
}

/// Signature and hash algorithms and the function to use for each.
static HASHES: [(Oid<'static>, &digest::Algorithm); 15] = [
    // md5WithRSAEncryption, sha1WithRSAEncryption, sha224…, sha256…, sha384…, sha512… (RFC 8017 §A.2.4)
    (oid!(1.2.840.113549.1.1.4), &digest::SHA256),
    (oid!(1.2.840.113549.1.1.5), &digest::SHA256),
    (oid!(1.2.840.113549.1.1.14), &digest::SHA224),
    (oid!(1.2.840.113549.1.1.11), &digest::SHA256),
    (oid!(1.2.840.113549.1.1.12), &digest::SHA384),
    (oid!(1.2.840.113549.1.1.13), &digest::SHA512),
    // ecdsa-with-SHA1, SHA224, SHA256, SHA384, SHA512 (RFC 5758 §3.2)
    (oid!(1.2.840.10045.4.1), &digest::SHA256),
    (oid!(1.2.840.10045.4.3.1), &digest::SHA224),
    (oid!(1.2.840.10045.4.3.2), &digest::SHA256),
    (oid!(1.2.840.10045.4.3.3), &digest::SHA384),
    (oid!(1.2.840.10045.4.3.4), &digest::SHA512),
    // RSASSA-PSS with id-sha1, id-sha256, id-sha384, id-sha512 (RFC 4055 §2.1)
    (oid!(1.3.14.3.2.26), &digest::SHA256),
    (oid!(2.16.840.1.101.3.4.2.1), &digest::SHA256),
    (oid!(2.16.840.1.101.3.4.2.2), &digest::SHA384),
    (oid!(2.16.840.1.101.3.4.2.3), &digest::SHA512),
];
