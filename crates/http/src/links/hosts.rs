//! The hosts of short links, and the domains that they belong to.

use super::url::host_name;
use axum::http::{HeaderMap, Uri, header};
use std::net::IpAddr;
use std::sync::Arc;

/// A host of short links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    /// Its name, in small letters.
    pub(crate) name: Box<str>,
    /// What its short URLs begin with: scheme, host and port.
    pub(crate) origin: Box<str>,
    /// The domain whose links it has.
    pub(crate) domain: Arc<str>,
    /// The same for all hosts of one domain.
    pub(super) number: u16,
}

/// Reads `links.hosts`: `ORIGIN=DOMAIN` each, where the origin is a host, or a URL of one.
pub(super) fn read(texts: &[String]) -> Result<Vec<Host>, String> {
    let mut hosts: Vec<Host> = Vec::new();
    for text in texts {
        let (origin, domain) = text
            .split_once('=')
            .ok_or_else(|| format!("`{text}` has to be HOST=DOMAIN, such as `go.example.com=example.com`"))?;
        let domain: Arc<str> = carillon_wire::jid::prepare_domain(domain)
            .map_err(|_| format!("`{domain}` in `{text}` is not the name of a domain"))?
            .into();
        let (name, origin) = origin_of(origin).map_err(|why| format!("`{text}`: {why}"))?;
        if hosts.iter().any(|host| *host.name == *name) {
            return Err(format!("`{name}` is there twice"));
        }
        let known = hosts.iter().find(|host| host.domain == domain).map(|host| host.number);
        let number = known.unwrap_or(hosts.len() as u16);
        hosts.push(Host { name: name.into(), origin: origin.into(), domain, number });
    }
    Ok(hosts)
}

/// A host's name and origin.
pub(crate) fn origin_of(text: &str) -> Result<(String, String), String> {
    let (scheme, authority) = match text.split_once("://") {
        Some((scheme @ ("http" | "https"), authority)) => (scheme, authority),
        Some((scheme, _)) => return Err(format!("`{scheme}` is not `http` or `https`")),
        None => ("https", text),
    };
    let (name, port) = match authority.split_once(':') {
        Some((name, port)) => {
            let port: u16 = port.parse().map_err(|_| format!("`{port}` is not a port"))?;
            (name, Some(port))
        }
        None => (authority, None),
    };
    let name = host_name(name)?;
    let origin =
        port.map_or_else(|| format!("{scheme}://{name}"), |port| format!("{scheme}://{name}:{port}"));
    Ok((name, origin))
}

/// The host that a request is for, as one of these.
pub(super) fn of<'a>(hosts: &'a [Host], uri: &Uri, headers: &HeaderMap) -> Option<&'a Host> {
    if hosts.is_empty() {
        return None;
    }
    let name = name_of(uri, headers)?;
    hosts.iter().find(|host| host.name.eq_ignore_ascii_case(name))
}

/// The name of the host that a request is for.
pub(crate) fn name_of<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    let named = match uri.authority() {
        Some(authority) => authority.as_str(),
        None => headers.get(header::HOST)?.to_str().ok()?,
    };
    let name = named.rsplit_once(':').map_or(named, |(name, _)| name);
    Some(name.strip_suffix('.').unwrap_or(name))
}

/// The host that a request is for, and where it comes from.
#[derive(Clone)]
pub(super) struct At {
    pub(super) host: Host,
    /// The address of the client, as trusted proxies see it.
    pub(super) client: IpAddr,
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn hosts() -> Vec<Host> {
        let texts = [
            "Go.Example.com=example.com",
            "http://l.example.org:8080=example.org",
            "s.example.com=example.com",
        ];
        read(&texts.map(str::to_owned)).expect("they can be read")
    }

    #[test]
    fn hosts_are_of_domains() {
        let hosts = hosts();
        let shown = |host: &Host| {
            (host.name.to_string(), host.origin.to_string(), host.domain.to_string(), host.number)
        };
        assert_eq!(
            shown(&hosts[0]),
            ("go.example.com".into(), "https://go.example.com".into(), "example.com".into(), 0)
        );
        assert_eq!(
            shown(&hosts[1]),
            ("l.example.org".into(), "http://l.example.org:8080".into(), "example.org".into(), 1)
        );
        assert_eq!(hosts[2].number, 0);
        for wrong in ["go.example.com", "ftp://a.example=b", "a b=c", "a.example:x=c", "=c", "a.example="] {
            assert!(read(&[wrong.to_owned()]).is_err(), "{wrong}");
        }
        assert!(read(&["a.example=b".to_owned(), "A.example=c".to_owned()]).is_err());
    }

    #[test]
    fn a_request_is_for_one_of_them_or_for_none() {
        let hosts = hosts();
        let number = |host: &'static str, uri: &'static str| {
            let headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_static(host))]);
            of(&hosts, &Uri::from_static(uri), &headers).map(|host| host.name.to_string())
        };
        assert_eq!(number("GO.example.com", "/a").as_deref(), Some("go.example.com"));
        assert_eq!(number("go.example.com.:443", "/a").as_deref(), Some("go.example.com"));
        assert_eq!(number("example.com", "/a"), None);
        assert_eq!(number("example.com", "http://go.example.com/a").as_deref(), Some("go.example.com"));
        assert_eq!(number("go.example.com", "http://example.com/a"), None);
        assert_eq!(of(&hosts, &Uri::from_static("/a"), &HeaderMap::new()), None);
    }
}
