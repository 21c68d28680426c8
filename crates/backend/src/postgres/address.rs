//! Reading the address of a database: what PostgreSQL's own tools take, without a password in it.

use super::open_error::OpenError;
use super::tls::{Mode, Tls};
use std::net::IpAddr;
use std::path::PathBuf;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

/// What an address says: where the database is, and how connections to it are secured.
///
/// # Errors
/// When it cannot be read, carries a password, or asks for what there is not.
pub(super) fn read(url: &str) -> Result<(Config, Tls), OpenError> {
    if !["postgresql://", "postgres://"].iter().any(|scheme| url.starts_with(scheme)) {
        return Err(OpenError::Address);
    }
    let (place, query) = url.split_once('?').unwrap_or((url, ""));
    let mut tls = Tls { mode: Mode::Disable, roots: None, certificate: None, key: None };
    let (mut mode, mut rest) = (None, Vec::new());
    for part in query.split('&').filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once('=').ok_or(OpenError::Address)?;
        let value = decoded(value).ok_or(OpenError::Address)?;
        let file = || (!value.is_empty()).then(|| PathBuf::from(&value));
        match key {
            "sslmode" => mode = Some(Mode::named(&value).ok_or(OpenError::SslMode)?),
            // What libpq calls the authorities of the system.
            "sslrootcert" if value == "system" => tls.roots = None,
            "sslrootcert" => tls.roots = file(),
            "sslcert" => tls.certificate = file(),
            "sslkey" => tls.key = file(),
            "password" => return Err(OpenError::Password),
            _ => rest.push(part),
        }
    }
    let mut config: Config = format!("{place}?{}", rest.join("&")).parse().map_err(|_| OpenError::Address)?;
    if config.get_password().is_some() {
        return Err(OpenError::Password);
    }
    if tls.certificate.is_some() != tls.key.is_some() {
        return Err(OpenError::ClientCertificate);
    }
    let is_here = is_here(&config);
    tls.mode = match (mode, is_here) {
        (Some(mode), _) => mode,
        (None, true) => Mode::Disable,
        (None, false) => Mode::VerifyFull,
    };
    // There is no TLS over Unix sockets: nobody is on the way.
    if config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_))) {
        tls.mode = Mode::Disable;
    }
    config.ssl_mode(if tls.mode == Mode::Disable { SslMode::Disable } else { SslMode::Require });
    Ok((config, tls))
}

/// Whether all servers that it names are on this machine.
fn is_here(config: &Config) -> bool {
    let addresses = config.get_hostaddrs();
    if !addresses.is_empty() {
        return addresses.iter().all(IpAddr::is_loopback);
    }
    config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        Host::Unix(_) => true,
    })
}

/// Text with `%` escapes (RFC 3986 §2.1) as what it stands for; none where they are broken.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit =
                    |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
                digit(rest.next()?)? * 16 + digit(rest.next()?)?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(url: &str) -> Mode {
        read(url).unwrap_or_else(|e| panic!("{url}: {e}")).1.mode
    }

    #[test]
    fn a_server_elsewhere_is_verified_unless_the_address_says_otherwise() {
        for here in ["localhost", "127.0.0.1", "[::1]", "%2Frun%2Fpostgresql"] {
            assert_eq!(mode(&format!("postgresql://u@{here}/d")), Mode::Disable, "{here}");
        }
        for elsewhere in ["db.example.org", "10.0.0.1", "localhost,db.example.org", "localhost.example.org"] {
            assert_eq!(mode(&format!("postgres://u@{elsewhere}/d")), Mode::VerifyFull, "{elsewhere}");
        }
        assert_eq!(mode("postgresql://u@localhost/d?hostaddr=10.0.0.1"), Mode::VerifyFull);
        assert_eq!(mode("postgresql://u@db/d?sslmode=require"), Mode::Require);
        assert_eq!(mode("postgresql://u@db/d?sslmode=verify-ca&connect_timeout=2"), Mode::VerifyCa);
        assert_eq!(mode("postgresql://u@db/d?sslmode=disable"), Mode::Disable);
        assert_eq!(mode("postgresql://u@localhost/d?sslmode=verify-full"), Mode::VerifyFull);
        assert_eq!(mode("postgresql://u@/d?host=%2Frun&sslmode=verify-full"), Mode::Disable);
    }

    #[test]
    fn files_are_named_by_parameters() {
        let url =
            "postgresql://u@db:6432/d?sslrootcert=%2Fetc%2Fca.pem&sslcert=/c.pem&sslkey=/k.pem&keepalives=0";
        let (config, tls) = read(url).expect("an address");
        let expected = Tls {
            mode: Mode::VerifyFull,
            roots: Some("/etc/ca.pem".into()),
            certificate: Some("/c.pem".into()),
            key: Some("/k.pem".into()),
        };
        assert_eq!((tls, config.get_ports()), (expected, &[6432][..]));
        assert_eq!(read("postgresql://u@db/d?sslrootcert=system").expect("an address").1.roots, None);
    }

    #[test]
    fn what_it_must_not_say_is_refused_without_repeating_it() {
        let refused = [
            ("postgresql://u:secret@db/d", "password"),
            ("postgresql://u@db/d?password=secret", "password"),
            ("postgresql://u@db/d?sslmode=prefer", "sslmode"),
            ("postgresql://u@db/d?sslmode=secret", "sslmode"),
            ("postgresql://u@db/d?sslcert=/secret", "sslkey"),
            ("postgresql://u@db/d?sslrootcert=%zzsecret", "form"),
            ("host=db password=secret", "form"),
            ("mysql://secret@db", "form"),
        ];
        for (url, word) in refused {
            let error = read(url).expect_err(url).to_string();
            assert!(error.contains(word) && !error.contains("secret"), "{url}: {error}");
        }
    }
}
