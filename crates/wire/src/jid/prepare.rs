//! Preparation of the three parts: Nodeprep, Nameprep and Resourceprep, with a short way for plain ASCII.
//!
//! RFC 7622 names PRECIS profiles; the stringprep profiles of RFC 6122 are what deployed clients and servers agree
//! on, and for ASCII both give the same result.

use std::borrow::Cow;
use std::net::Ipv6Addr;
use std::sync::Arc;

use super::error::{JidError, Part};

/// The longest part, in bytes (RFC 7622 §3).
const PART_BYTES_MAX: usize = 1023;

/// How many characters all those that stand for words may become in one part.
const GROWTH_MAX: usize = 36;

/// A text cut into parts that are not prepared yet.
pub(super) struct Split<'a> {
    pub(super) local: Option<&'a str>,
    pub(super) domain: &'a str,
    pub(super) resource: Option<&'a str>,
}

/// Cuts at the first `/`, then at the first `@` before it (RFC 7622 §3.1).
pub(super) fn split(text: &str) -> Split<'_> {
    let (bare, resource) = match text.split_once('/') {
        Some((bare, resource)) => (bare, Some(resource)),
        None => (text, None),
    };
    match bare.split_once('@') {
        Some((local, domain)) => Split { local: Some(local), domain, resource },
        None => Split { local: None, domain: bare, resource },
    }
}

/// Text that is prepared: the whole of it, the localpart's length and where the domain ends.
pub(super) type Composed = (Arc<str>, u16, u16);

/// Prepares the parts of `text`; shares out `text` itself if that is prepared already.
pub(super) fn parse(text: &str) -> Result<Composed, JidError> {
    let Split { local, domain, resource } = split(text);
    let parts = prepare_parts(local, domain, resource)?;
    match parts {
        (None | Some(Cow::Borrowed(_)), Cow::Borrowed(_), None | Some(Cow::Borrowed(_))) => {
            // Each part is at most 1023 bytes, so the sums fit.
            let local_end = local.map_or(0, str::len);
            let domain_end = local.map_or(0, |local| local.len() + 1) + domain.len();
            Ok((text.into(), local_end as u16, domain_end as u16))
        }
        _ => Ok(join(parts)),
    }
}

/// Prepares the parts and joins them.
pub(super) fn compose(
    local: Option<&str>,
    domain: &str,
    resource: Option<&str>,
) -> Result<Composed, JidError> {
    prepare_parts(local, domain, resource).map(join)
}

type Parts<'a> = (Option<Cow<'a, str>>, Cow<'a, str>, Option<Cow<'a, str>>);

fn prepare_parts<'a>(
    local: Option<&'a str>,
    domain: &'a str,
    resource: Option<&'a str>,
) -> Result<Parts<'a>, JidError> {
    let local = local.map(self::local).transpose()?;
    let domain = self::domain(domain)?;
    let resource = resource.map(self::resource).transpose()?;
    Ok((local, domain, resource))
}

fn join((local, domain, resource): Parts<'_>) -> Composed {
    let mut text = String::new();
    // Each part is at most 1023 bytes, so the sums fit.
    let mut local_end = 0;
    if let Some(local) = local {
        text.push_str(&local);
        local_end = text.len() as u16;
        text.push('@');
    }
    text.push_str(&domain);
    let domain_end = text.len() as u16;
    if let Some(resource) = resource {
        text.push('/');
        text.push_str(&resource);
    }
    (text.into(), local_end, domain_end)
}

/// Prepares a localpart (Nodeprep), for example a username that came by SASL.
///
/// # Errors
/// If it is empty, longer than 1023 bytes or holds what Nodeprep or RFC 7622 §3.3.1 forbids.
pub fn prepare_local(text: &str) -> Result<String, JidError> {
    local(text).map(Cow::into_owned)
}

/// Prepares a domain (Nameprep): a trailing dot is removed, IP literals are allowed.
///
/// # Errors
/// If it is empty, longer than 1023 bytes, has an empty label or holds what no host name has.
pub fn prepare_domain(text: &str) -> Result<String, JidError> {
    domain(text).map(Cow::into_owned)
}

/// Prepares a resource (Resourceprep).
///
/// # Errors
/// If it is empty, longer than 1023 bytes or holds control characters or others that Resourceprep forbids.
pub fn prepare_resource(text: &str) -> Result<String, JidError> {
    resource(text).map(Cow::into_owned)
}

fn local(text: &str) -> Result<Cow<'_, str>, JidError> {
    let prepared = if text.is_ascii() {
        lowercase(text)
    } else {
        stable(text, Part::Local, |text| stringprep::nodeprep(text).ok().map(Cow::into_owned))?
    };
    check_length(&prepared, Part::Local)?;
    match find(&prepared, |c| !allowed_in_local(c)) {
        Some(c) => Err(JidError::Forbidden(Part::Local, c)),
        None => Ok(prepared),
    }
}

fn domain(text: &str) -> Result<Cow<'_, str>, JidError> {
    let prepared = if text.is_ascii() {
        lowercase(text)
    } else {
        stable(text, Part::Domain, |text| {
            // IDNA2003 §3.1: these separate labels, too.
            let dotted = text.replace(['\u{3002}', '\u{FF0E}', '\u{FF61}'], ".");
            stringprep::nameprep(&dotted).ok().map(Cow::into_owned)
        })?
    };
    // RFC 7622 §3.2: the root's dot is no part of the address.
    let prepared = match prepared.strip_suffix('.') {
        Some(shorter) => Cow::Owned(shorter.to_owned()),
        None => prepared,
    };
    check_length(&prepared, Part::Domain)?;
    if let Some(rest) = prepared.strip_prefix('[') {
        let literal = rest.strip_suffix(']').and_then(|ip| ip.parse::<Ipv6Addr>().ok());
        return if literal.is_some() { Ok(prepared) } else { Err(JidError::IpLiteral) };
    }
    if let Some(c) = find(&prepared, |c| !allowed_in_domain(c)) {
        return Err(JidError::Forbidden(Part::Domain, c));
    }
    if prepared.split('.').any(str::is_empty) {
        return Err(JidError::EmptyLabel);
    }
    Ok(prepared)
}

pub(super) fn resource(text: &str) -> Result<Cow<'_, str>, JidError> {
    let prepared = if text.is_ascii() {
        Cow::Borrowed(text)
    } else {
        stable(text, Part::Resource, |text| stringprep::resourceprep(text).ok().map(Cow::into_owned))?
    };
    check_length(&prepared, Part::Resource)?;
    match find(&prepared, char::is_control) {
        Some(c) => Err(JidError::Forbidden(Part::Resource, c)),
        None => Ok(prepared),
    }
}

/// The first such character; does not decode what is ASCII.
fn find(text: &str, matches: impl Fn(char) -> bool) -> Option<char> {
    if text.is_ascii() {
        text.bytes().map(char::from).find(|c| matches(*c))
    } else {
        text.chars().find(|c| matches(*c))
    }
}

/// RFC 7622 §3.3.1, and what Nodeprep forbids of ASCII.
fn allowed_in_local(c: char) -> bool {
    !c.is_control() && !matches!(c, ' ' | '"' | '&' | '\'' | '/' | ':' | '<' | '>' | '@')
}

/// Letters, digits, hyphen and dot; the underscore because real host names have it; beyond ASCII, what Nameprep left.
fn allowed_in_domain(c: char) -> bool {
    c.is_ascii_lowercase()
        || c.is_ascii_digit()
        || matches!(c, '-' | '.' | '_')
        || (!c.is_ascii() && !c.is_control())
}

fn lowercase(text: &str) -> Cow<'_, str> {
    if text.bytes().any(|b| b.is_ascii_uppercase()) {
        Cow::Owned(text.to_ascii_lowercase())
    } else {
        Cow::Borrowed(text)
    }
}

/// Prepares again what changed: an address that changes when it is read again would be two addresses.
fn stable<'a>(
    text: &str,
    part: Part,
    prepare: impl Fn(&str) -> Option<String>,
) -> Result<Cow<'a, str>, JidError> {
    // Preparation looks up each character in some twenty tables, so it is not begun for what is too long already, or
    // becomes so.
    if text.len() > PART_BYTES_MAX || text.chars().map(growth).sum::<usize>() > GROWTH_MAX {
        return Err(JidError::TooLong(part));
    }
    let once = prepare(text).ok_or(JidError::Unprepared(part))?;
    if once == text {
        return Ok(Cow::Owned(once));
    }
    check_length(&once, part)?;
    let twice = prepare(&once).ok_or(JidError::Unprepared(part))?;
    if once == twice { Ok(Cow::Owned(once)) } else { Err(JidError::Unprepared(part)) }
}

/// How many characters of compatibility normalisation (NFKC) a character becomes that stands for words: 18 at most.
fn growth(c: char) -> usize {
    match c {
        '\u{FDF0}'..='\u{FDFC}' => 18,
        '\u{3300}'..='\u{33FF}' => 6,
        _ => 0,
    }
}

fn check_length(text: &str, part: Part) -> Result<(), JidError> {
    match text.len() {
        0 => Err(JidError::Empty(part)),
        1..=PART_BYTES_MAX => Ok(()),
        _ => Err(JidError::TooLong(part)),
    }
}
