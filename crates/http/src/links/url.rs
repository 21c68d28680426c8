//! The URLs that may be shortened: read strictly, written in one form.
//!
//! Two spellings of a URL get one code, and what a browser might read differently than we do is refused: user names, backslashes, control
//! characters, addresses in other than their usual form.

use crate::outgoing::address;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The longest URL, in bytes of its normal form.
pub(crate) const URL_BYTES_MAX: usize = 2048;

/// What may be shortened.
#[derive(Clone, Copy)]
pub(super) struct Rules<'a> {
    /// The hosts of short links of this node.
    pub(super) own_hosts: &'a [&'a str],
    /// Schemes of apps, besides `http` and `https`.
    pub(super) app_schemes: &'a [String],
    /// The only hosts that it may lead to, and their subdomains; none where all may be.
    pub(super) targets: Option<&'a [String]>,
}

/// The normal form of a URL; else why it cannot be shortened.
pub(super) fn read(text: &str, rules: Rules<'_>) -> Result<String, String> {
    let text = text.trim_matches(|c: char| c == ' ' || c == '\t' || c == '\r' || c == '\n');
    if text.is_empty() {
        return Err("it is empty".into());
    }
    if let Some(c) =
        text.chars().find(|c| c.is_control() || c.is_whitespace() || matches!(c, '\\' | '\u{feff}'))
    {
        return Err(format!("it contains {}", named(c)));
    }
    if let Some(c) = text.chars().find(|c| is_direction(*c)) {
        return Err(format!("it contains {}", named(c)));
    }
    let (scheme, rest) = text.split_once(':').ok_or("it has no scheme, such as `https:`")?;
    let scheme = scheme.to_ascii_lowercase();
    let url = match scheme.as_str() {
        "http" | "https" => web(&scheme, rest, rules)?,
        _ if rules.app_schemes.contains(&scheme) && rules.targets.is_none() => {
            format!("{scheme}:{}", escaped(rest)?)
        }
        _ => {
            return Err(format!(
                "its scheme is `{}`; it has to be `http`, `https` or one of `links.app_schemes`",
                shown(&scheme)
            ));
        }
    };
    if url.len() > URL_BYTES_MAX {
        return Err(format!("it has {} bytes; at most {URL_BYTES_MAX} are possible", url.len()));
    }
    Ok(url)
}

/// Whether a scheme may be one of an app: not one by which browsers run scripts or show what is on the computer.
pub(crate) fn is_app_scheme(scheme: &str) -> bool {
    const OTHERS: [&str; 16] = [
        "http",
        "https",
        "javascript",
        "vbscript",
        "data",
        "file",
        "blob",
        "about",
        "view-source",
        "filesystem",
        "ftp",
        "ws",
        "wss",
        "jar",
        "chrome",
        "intent",
    ];
    let mut bytes = scheme.bytes();
    bytes.next().is_some_and(|c| c.is_ascii_lowercase())
        && bytes.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'+' | b'-' | b'.'))
        && !OTHERS.contains(&scheme)
}

/// A name of a host in its usual form: ASCII, at least two labels, not an address.
pub(crate) fn host_name(text: &str) -> Result<String, String> {
    let host = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    if !host.is_ascii() {
        return Err("its host has other letters than those of ASCII; write it in its ASCII form, which begins with `xn--`".into());
    }
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_'))
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if host.len() > 253 || !host.split('.').all(is_label) {
        return Err(format!("`{}` is not the name of a host", shown(&host)));
    }
    Ok(host)
}

fn web(scheme: &str, rest: &str, rules: Rules<'_>) -> Result<String, String> {
    let rest = rest.strip_prefix("//").ok_or_else(|| format!("`{scheme}:` has to be followed by `//`"))?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    if authority.contains('@') {
        return Err("it has a user name or a password, which can make it look like another".into());
    }
    let (host, port) = host_and_port(authority)?;
    let host = host_of(host)?;
    check_host(&host, rules)?;
    let default = if scheme == "http" { 80 } else { 443 };
    let mut url = format!("{scheme}://{host}");
    if let Some(port) = port.filter(|port| *port != default) {
        write!(url, ":{port}").expect("a string takes all");
    }
    let (rest, fragment) = match rest.split_once('#') {
        Some((rest, fragment)) => (rest, Some(fragment)),
        None => (rest, None),
    };
    let (path, query) = match rest.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (rest, None),
    };
    url.push_str(&without_dots(&escaped(path)?));
    for (sign, part) in [('?', query), ('#', fragment)] {
        if let Some(part) = part {
            url.push(sign);
            url.push_str(&escaped(part)?);
        }
    }
    Ok(url)
}

fn host_and_port(authority: &str) -> Result<(&str, Option<u16>), String> {
    let after_bracket = authority.rfind(']').map_or(0, |at| at + 1);
    let Some(colon) = authority[after_bracket..].find(':').map(|at| at + after_bracket) else {
        return Ok((authority, None));
    };
    let (host, port) = (&authority[..colon], &authority[colon + 1..]);
    if port.is_empty() {
        return Ok((host, None));
    }
    let number = port.parse().ok().filter(|n| *n != 0 && port.bytes().all(|c| c.is_ascii_digit()));
    number.map(|n| (host, Some(n))).ok_or_else(|| format!("`{}` is not a port", shown(port)))
}

/// The host in its usual form.
fn host_of(host: &str) -> Result<String, String> {
    if host.is_empty() {
        return Err("it has no host".into());
    }
    let public = |address: IpAddr, text: String| match address::is_public(address) {
        true => Ok(text),
        false => Err(format!("`{text}` is not a public address")),
    };
    if let Some(inner) = host.strip_prefix('[') {
        let address: Option<Ipv6Addr> = inner.strip_suffix(']').and_then(|text| text.parse().ok());
        let address = address.ok_or_else(|| format!("`{}` is not an IPv6 address", shown(host)))?;
        return public(address.into(), format!("[{address}]"));
    }
    let name = host_name(host)?;
    let last = name.rsplit('.').next().unwrap_or_default();
    // Browsers take a host whose last label is a number for an IPv4 address in one of many forms.
    if last.bytes().all(|c| c.is_ascii_digit()) || last.starts_with("0x") {
        let address: Ipv4Addr = name.parse().map_err(|_| {
            format!("`{}` is an IPv4 address in another form than four decimal numbers", shown(&name))
        })?;
        return public(address.into(), address.to_string());
    }
    Ok(name)
}

fn check_host(host: &str, rules: Rules<'_>) -> Result<(), String> {
    if host.starts_with('[') || host.parse::<Ipv4Addr>().is_ok() {
        return match rules.targets {
            Some(_) => Err("it may lead to the hosts in `links.public_targets` only".into()),
            None => Ok(()),
        };
    }
    if !host.contains('.') || NOT_PUBLIC.iter().any(|suffix| is_within(host, suffix)) {
        return Err(format!("`{host}` is not a public host"));
    }
    if rules.own_hosts.iter().any(|own| is_within(host, own)) {
        return Err(format!("`{host}` has short links itself: one may not lead to another"));
    }
    if SHORTENERS.iter().any(|shortener| is_within(host, shortener)) {
        return Err(format!("`{host}` shortens URLs itself: it cannot be seen where it leads"));
    }
    match rules.targets {
        Some(targets) if !targets.iter().any(|target| is_within(host, target)) => {
            Err("it may lead to the hosts in `links.public_targets` only".into())
        }
        _ => Ok(()),
    }
}

/// Whether a host is another, or below it.
fn is_within(host: &str, other: &str) -> bool {
    host.strip_suffix(other).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Names that are never public (RFC 6761, RFC 6762, RFC 8375, RFC 9476), and those by which clouds give away keys.
const NOT_PUBLIC: [&str; 9] =
    ["localhost", "local", "internal", "home.arpa", "invalid", "test", "onion", "lan", "alt"];

/// Who shortens URLs, too.
const SHORTENERS: [&str; 24] = [
    "bit.ly",
    "bitly.com",
    "tinyurl.com",
    "t.co",
    "goo.gl",
    "ow.ly",
    "is.gd",
    "v.gd",
    "buff.ly",
    "rebrand.ly",
    "cutt.ly",
    "shorturl.at",
    "rb.gy",
    "t.ly",
    "tiny.cc",
    "lnkd.in",
    "dub.sh",
    "s.id",
    "bl.ink",
    "short.io",
    "shorturl.gg",
    "kutt.to",
    "1url.com",
    "adf.ly",
];

/// A part behind the host, with other characters than those of URLs escaped, and escapes in one form (RFC 3986 §6.2.2).
fn escaped(part: &str) -> Result<String, String> {
    let (mut out, mut bytes) = (String::with_capacity(part.len()), part.bytes());
    while let Some(c) = bytes.next() {
        let c = if c == b'%' {
            let digit = |c: Option<u8>| c.and_then(|c| char::from(c).to_digit(16));
            let (Some(high), Some(low)) = (digit(bytes.next()), digit(bytes.next())) else {
                return Err("it has a `%` that two hexadecimal digits do not follow".into());
            };
            let c = (high * 16 + low) as u8;
            if c < b' ' || c == 0x7f {
                return Err(format!("it contains {}, escaped", named(char::from(c))));
            }
            if !is_unreserved(c) {
                write!(out, "%{c:02X}").expect("a string takes all");
                continue;
            }
            c
        } else {
            c
        };
        if is_unreserved(c) || b"!$&'()*+,;=:@/?[]#".contains(&c) {
            out.push(char::from(c));
        } else {
            write!(out, "%{c:02X}").expect("a string takes all");
        }
    }
    Ok(out)
}

fn is_unreserved(c: u8) -> bool {
    c.is_ascii_alphanumeric() || b"-._~".contains(&c)
}

/// A path without `.` and `..` (RFC 3986 §5.2.4).
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let segments: Vec<&str> = path.strip_prefix('/').unwrap_or(path).split('/').collect();
    for (n, segment) in segments.iter().enumerate() {
        let is_last = n + 1 == segments.len();
        match *segment {
            "." | ".." => {
                if *segment == ".." {
                    kept.pop();
                }
                if is_last {
                    kept.push("");
                }
            }
            segment => kept.push(segment),
        }
    }
    format!("/{}", kept.join("/"))
}

/// Characters that change the direction of what is shown.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}'..='\u{200d}')
}

fn named(c: char) -> String {
    match c {
        ' ' => "a space".into(),
        '\\' => "a backslash".into(),
        c => format!("the character U+{:04X}", u32::from(c)),
    }
}

/// A part of a URL that is named in a message.
fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, String> {
        let own = ["go.example.com"];
        let app_schemes = ["myapp".to_owned()];
        super::read(text, Rules { own_hosts: &own, app_schemes: &app_schemes, targets: None })
    }

    #[test]
    fn spellings_of_one_url_have_one_form() {
        for (text, url) in [
            ("https://example.com", "https://example.com/"),
            (" HTTPS://Example.COM.:443/a/./b/../c?x=%7Euser#F ", "https://example.com/a/c?x=~user#F"),
            ("http://example.com:80?q", "http://example.com/?q"),
            ("http://example.com:8080/%e2%82%ac/€", "http://example.com:8080/%E2%82%AC/%E2%82%AC"),
            ("https://example.com/a|b<c>\"", "https://example.com/a%7Cb%3Cc%3E%22"),
            ("https://8.8.8.8/", "https://8.8.8.8/"),
            ("https://[2606:4700:0::1111]:444/", "https://[2606:4700::1111]:444/"),
            ("https://xn--bcher-kva.example/", "https://xn--bcher-kva.example/"),
            ("https://example.com/..", "https://example.com/"),
            ("https://example.com/a/..", "https://example.com/"),
            ("https://example.com/a/.", "https://example.com/a/"),
            ("https://example.com/a//b", "https://example.com/a//b"),
            (
                "https://example.com/?u=https://user@other.example",
                "https://example.com/?u=https://user@other.example",
            ),
            ("myapp:open/1", "myapp:open/1"),
            ("MyApp://open?x=1", "myapp://open?x=1"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(url), "{text}");
            assert_eq!(read(url).as_deref(), Ok(url), "its form is final");
        }
    }

    #[test]
    fn the_public_may_lead_to_few() {
        let targets = ["example.org".to_owned()];
        let read = |text: &str| {
            let rules = Rules { own_hosts: &[], app_schemes: &["myapp".to_owned()], targets: Some(&targets) };
            super::read(text, rules).is_ok()
        };
        assert!(read("https://example.org/") && read("https://www.example.org/"));
        assert!(!read("https://badexample.org/") && !read("https://8.8.8.8/") && !read("myapp:x"));
    }

    #[test]
    fn schemes_that_browsers_act_on_are_no_apps() {
        assert!(is_app_scheme("myapp") && is_app_scheme("com.example.app"));
        for scheme in ["", "javascript", "data", "file", "https", "Upper", "a b", "1a"] {
            assert!(!is_app_scheme(scheme), "{scheme}");
        }
    }
}
