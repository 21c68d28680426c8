//! Where a service is that an operator names, and that is shown credentials.

use hyper::Uri;

/// Where a push service is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) is_tls: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Host and port, as requests name them.
    pub(crate) authority: String,
}

impl Origin {
    /// The origin of a URL that has no path. `https` is wanted but for this machine, since requests carry what proves who sends.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub(crate) fn of(url: &str) -> Result<Origin, String> {
        let uri: Uri = url.parse().map_err(|error| format!("it is not a URL: {error}"))?;
        let is_tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err("it begins with https://".to_owned()),
        };
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() || authority.contains('@') {
            return Err("it has a host, and no user name".to_owned());
        }
        let is_near =
            host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|at| at.is_loopback());
        if !is_tls && !is_near {
            return Err("it begins with https://, since http:// is for this machine only".to_owned());
        }
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        Ok(Origin { is_tls, host: host.to_owned(), port, authority: authority.to_owned() })
    }

    /// The URL of a path there.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", if self.is_tls { "https" } else { "http" }, self.authority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_go_by_tls_except_to_this_machine() {
        let apple = Origin::of("https://api.push.apple.com").expect("a URL");
        assert_eq!((apple.is_tls, &*apple.host, apple.port), (true, "api.push.apple.com", 443));
        assert_eq!(apple.url("/3/device/x"), "https://api.push.apple.com/3/device/x");
        let near = Origin::of("http://[::1]:81").expect("a URL");
        assert_eq!((near.is_tls, &*near.host, near.port, &*near.authority), (false, "::1", 81, "[::1]:81"));
        assert!(Origin::of("http://127.0.0.1:8080").is_ok() && Origin::of("http://localhost").is_ok());
        for wrong in [
            "http://api.push.apple.com",
            "http://10.0.0.1",
            "ftp://localhost",
            "localhost",
            "",
            "https://a@b",
        ] {
            assert!(Origin::of(wrong).is_err(), "{wrong}");
        }
    }
}
