//! What TLS to an engine failed by, with the setting that mends it.
//!
//! Drivers pass on the words of the TLS library, and the alerts of the other side. These say what is wrong, but not of whom, nor what to do about it.

use std::fmt::Display;

/// The settings that TLS to an engine depends on, as the manual calls them.
pub(crate) struct Settings {
    /// What names the server.
    pub(crate) address: &'static str,
    /// What names the authorities that are trusted.
    pub(crate) authorities: &'static str,
    /// What names the certificate of the node.
    pub(crate) certificate: &'static str,
}

/// An error of a connection that was secured, with what to do about it where that is known. `is_shown` is whether the node showed a certificate.
pub(crate) fn explained(error: &dyn Display, settings: &Settings, is_shown: bool) -> String {
    let text = error.to_string();
    match remedy(&text, settings, is_shown) {
        Some(remedy) => format!("{text}; {remedy}"),
        None => text,
    }
}

/// What is to be done about an error with this text.
pub(crate) fn remedy(text: &str, settings: &Settings, is_shown: bool) -> Option<String> {
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let Settings { address, authorities, certificate } = settings;
    if has(SERVER_UNKNOWN) {
        return Some(format!(
            "the certificate of the server is of no authority that is trusted: {authorities} names these"
        ));
    }
    if has(SERVER_NAME) {
        return Some(format!(
            "the certificate of the server is for another name: {address} has to name the server as its certificate does"
        ));
    }
    if has(SERVER_TIME) {
        return Some("the certificate of the server is not valid at this time: renew it, or set the clock of this machine".to_owned());
    }
    if has(USER) && is_shown {
        return Some(format!(
            "the certificate of the node ({certificate}) may be for another user, or the password be wrong"
        ));
    }
    let of_node = if is_shown {
        format!("the server refuses the certificate of the node: see {certificate}")
    } else {
        format!("the server demands a certificate of the node: set {certificate}")
    };
    if has(NODE) {
        return Some(of_node);
    }
    // The alert is lost where the server closes before it has read all.
    has(BROKEN).then(|| format!("where this is so each time, it may be that {of_node}"))
}

/// A bad signature is of an authority that has the name of one that is trusted, and another key.
const SERVER_UNKNOWN: &[&str] = &["UnknownIssuer", "BadSignature", "CaUsedAsEndEntity"];
const SERVER_NAME: &[&str] = &["not valid for name", "NotValidForName"];
const SERVER_TIME: &[&str] = &["certificate expired", "certificate not valid yet", "Expired", "NotValidYet"];
/// PostgreSQL says whom it did not let in, and not why.
const USER: &[&str] = &["authentication failed for user"];
/// Alerts (RFC 8446 §6.2) about a certificate of the node. Some servers say `BadCertificate` where there is none.
const NODE: &[&str] = &[
    "CertificateRequired",
    "BadCertificate",
    "UnsupportedCertificate",
    "CertificateRevoked",
    "CertificateExpired",
    "CertificateUnknown",
    "UnknownCA",
    "AccessDenied",
    "DecryptError",
    // PostgreSQL.
    "requires a valid client certificate",
];
const BROKEN: &[&str] =
    &["reset by peer", "Broken pipe", "unexpected end of file", "without sending TLS close_notify"];

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: Settings =
        Settings { address: "the-url", authorities: "the-ca", certificate: "the-certificate" };

    fn names(text: &str, is_shown: bool) -> Vec<&'static str> {
        let explained = explained(&text, &SETTINGS, is_shown);
        assert!(explained.starts_with(text), "{explained}");
        let mut named = vec!["the-url", "the-ca", "the-certificate", "demands", "refuses"];
        named.retain(|name| explained.contains(name));
        named
    }

    /// By the words of the library that all drivers use: a new version may have others.
    #[cfg(feature = "postgres")]
    #[test]
    fn what_the_tls_library_says_is_known() {
        use rustls::{AlertDescription, CertificateError, Error};
        let cases = [
            (Error::InvalidCertificate(CertificateError::UnknownIssuer), false, vec!["the-ca"]),
            (Error::InvalidCertificate(CertificateError::NotValidForName), false, vec!["the-url"]),
            (
                Error::AlertReceived(AlertDescription::CertificateRequired),
                false,
                vec!["the-certificate", "demands"],
            ),
            (
                Error::AlertReceived(AlertDescription::BadCertificate),
                false,
                vec!["the-certificate", "demands"],
            ),
            (
                Error::AlertReceived(AlertDescription::BadCertificate),
                true,
                vec!["the-certificate", "refuses"],
            ),
            (Error::AlertReceived(AlertDescription::UnknownCA), true, vec!["the-certificate", "refuses"]),
            (Error::AlertReceived(AlertDescription::ProtocolVersion), true, vec![]),
        ];
        for (error, is_shown, expected) in cases {
            assert_eq!(names(&error.to_string(), is_shown), expected, "{error}");
        }
        let expired = Error::InvalidCertificate(CertificateError::Expired).to_string();
        assert!(explained(&expired, &SETTINGS, true).contains("clock"));
    }

    #[test]
    fn what_servers_say_is_known_and_what_is_of_no_certificate_is_left_as_it_is() {
        assert_eq!(
            names("connection requires a valid client certificate (28000)", false),
            ["the-certificate", "demands"]
        );
        assert_eq!(
            names("certificate authentication failed for user \"a\" (28000)", true),
            ["the-certificate"]
        );
        assert_eq!(names("password authentication failed for user \"a\" (28P01)", false), [""; 0]);
        assert_eq!(names("Connection reset by peer (os error 104)", false), ["the-certificate", "demands"]);
        assert_eq!(names("Connection refused (os error 111)", true), [""; 0]);
    }
}
