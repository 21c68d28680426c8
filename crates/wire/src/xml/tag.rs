//! The strict parsing of a start tag (XML 1.0 §3.1).

use std::borrow::Cow;

use smallvec::SmallVec;

use super::chars::is_space;
use super::error::Error;
use super::limits::Limits;
use super::name::check_qualified;
use super::reference::{attribute_value, check_references};
use super::scope::{DeclarationIndex, Scope};

/// Up to this number, attributes are compared in pairs; more are sorted first.
const PAIRS_MAX: usize = 8;

/// An attribute as written in the tag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawAttribute<'a> {
    /// The qualified name.
    pub(crate) name: &'a str,
    prefix_len: Option<u16>,
    /// The declaration of the prefix, if there is one, after [`Tag::resolve`].
    pub(super) place: DeclarationIndex,
    /// The text between the quotes; its references are checked.
    raw: &'a str,
}

impl<'a> RawAttribute<'a> {
    /// The prefix, if there is one.
    pub(crate) fn prefix(&self) -> Option<&'a str> {
        self.prefix_len.and_then(|len| self.name.get(..usize::from(len)))
    }

    /// The name without its prefix.
    pub(crate) fn local(&self) -> &'a str {
        self.prefix_len.map_or(self.name, |len| self.name.get(usize::from(len) + 1..).unwrap_or_default())
    }

    /// The value, with references resolved.
    pub(crate) fn value(&self) -> Cow<'a, str> {
        attribute_value(self.raw)
    }

    /// The prefix that this attribute declares; empty for the default namespace.
    pub(super) fn declares(&self) -> Option<&'a str> {
        match self.prefix() {
            None if self.name == "xmlns" => Some(""),
            Some("xmlns") => Some(self.local()),
            _ => None,
        }
    }
}

/// A start tag.
#[derive(Default, Debug)]
pub(crate) struct Tag<'a> {
    /// The qualified name.
    pub(crate) name: &'a str,
    prefix_len: Option<u16>,
    /// The declaration of the prefix or of the default namespace, after [`Tag::resolve`].
    pub(super) place: DeclarationIndex,
    /// Attributes that declare no namespace.
    pub(crate) attributes: SmallVec<[RawAttribute<'a>; 8]>,
    /// Attributes that declare namespaces.
    pub(super) declarations: SmallVec<[RawAttribute<'a>; 4]>,
}

impl<'a> Tag<'a> {
    /// Replaces this tag with the one whose content (between `<` and `>` or `/>`) is given.
    pub(super) fn read(&mut self, content: &'a str, limits: &Limits) -> Result<(), Error> {
        self.attributes.clear();
        self.declarations.clear();
        let (name, mut rest) = split_name(content);
        self.name = name;
        self.prefix_len = check_qualified(name)?;
        while let Some((attribute, after)) = read_attribute(rest)? {
            rest = after;
            if attribute.declares().is_some() {
                if self.declarations.len() >= usize::from(limits.namespaces) {
                    return Err(Error::TooManyNamespaces);
                }
                self.declarations.push(attribute);
            } else {
                if self.attributes.len() >= usize::from(limits.attributes_max()) {
                    return Err(Error::TooManyAttributes);
                }
                self.attributes.push(attribute);
            }
        }
        Ok(())
    }

    /// Looks up the declaration of each prefix once.
    pub(super) fn resolve(&mut self, scope: &Scope<'_>) -> Result<(), Error> {
        self.place = scope.find(self.prefix())?;
        for attribute in &mut self.attributes {
            if let Some(prefix) = attribute.prefix() {
                attribute.place = scope.find(prefix)?;
            }
        }
        self.check_distinct(scope)
    }

    /// Checks that no two attributes have the same name in the same namespace (XML Namespaces §6.3).
    fn check_distinct(&self, scope: &Scope<'_>) -> Result<(), Error> {
        let attributes = &self.attributes[..];
        let identity = |a: &RawAttribute<'a>| (a.local(), a.prefix_len.map(|_| scope.ns(a.place)));
        let twice = if attributes.len() <= PAIRS_MAX {
            attributes.iter().enumerate().any(|(at, attribute)| {
                let same = |other: &RawAttribute<'a>| {
                    other.local() == attribute.local() && identity(other) == identity(attribute)
                };
                attributes.iter().take(at).any(same)
            })
        } else {
            let mut sorted: SmallVec<[_; 64]> = attributes.iter().map(identity).collect();
            sorted.sort_unstable_by(|(a, a_ns), (b, b_ns)| (a.len(), a, a_ns).cmp(&(b.len(), b, b_ns)));
            sorted.windows(2).any(|pair| matches!(pair, [one, other] if one == other))
        };
        if twice { Err(Error::DuplicateAttribute) } else { Ok(()) }
    }

    /// The prefix; empty where there is none.
    pub(crate) fn prefix(&self) -> &'a str {
        self.prefix_len.and_then(|len| self.name.get(..usize::from(len))).unwrap_or_default()
    }

    /// The name without its prefix.
    pub(crate) fn local(&self) -> &'a str {
        self.prefix_len.map_or(self.name, |len| self.name.get(usize::from(len) + 1..).unwrap_or_default())
    }

    /// The value of the attribute with this qualified name.
    pub(crate) fn attribute(&self, name: &str) -> Option<Cow<'a, str>> {
        self.attributes.iter().find(|a| a.name == name).map(RawAttribute::value)
    }
}

/// Splits at the end of a name, which is white space or `=`.
fn split_name(text: &str) -> (&str, &str) {
    let end = text.bytes().position(|b| is_space(b) || b == b'=').unwrap_or(text.len());
    text.split_at(end)
}

fn skip_space(text: &str) -> &str {
    text.trim_start_matches([' ', '\t', '\n', '\r'])
}

/// Splits off white space and one attribute; `None` at the end of the tag.
fn read_attribute(text: &str) -> Result<Option<(RawAttribute<'_>, &str)>, Error> {
    let inner = skip_space(text);
    if inner.is_empty() {
        return Ok(None);
    }
    if inner.len() == text.len() {
        return Err(Error::Tag);
    }
    let (name, rest) = split_name(inner);
    let prefix_len = check_qualified(name)?;
    let rest = skip_space(rest).strip_prefix('=').ok_or(Error::Tag)?;
    let rest = skip_space(rest);
    let Some(&quote @ (b'\'' | b'"')) = rest.as_bytes().first() else {
        return Err(Error::AttributeValue);
    };
    let rest = rest.get(1..).unwrap_or_default();
    let end = memchr::memchr(quote, rest.as_bytes()).ok_or(Error::AttributeValue)?;
    let (raw, rest) = rest.split_at_checked(end).ok_or(Error::AttributeValue)?;
    match memchr::memchr2(b'<', b'&', raw.as_bytes()) {
        None => {}
        Some(_) if raw.contains('<') => return Err(Error::AttributeValue),
        Some(first) => check_references(raw.get(first..).unwrap_or_default())?,
    }
    Ok(Some((
        RawAttribute { name, prefix_len, place: DeclarationIndex::default(), raw },
        rest.get(1..).unwrap_or_default(),
    )))
}
