//! The namespaces in scope (XML Namespaces §5, §6).

use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::Arc;

use smallvec::SmallVec;

use super::error::Error;
use super::limits::Limits;
use crate::ns;

/// The declarations in scope around a unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outer<'a> {
    /// The default namespace; empty if there is none.
    pub(crate) default_ns: &'a str,
    /// Prefixes with their namespaces.
    pub(crate) prefixes: &'a [(Box<str>, Box<str>)],
    /// Whether `stream` is bound as the usual stream header binds it.
    pub(crate) stream_prefix: bool,
}

impl<'a> Outer<'a> {
    /// A default namespace without prefixes.
    pub(crate) fn default_ns(default_ns: &'a str) -> Self {
        Self { default_ns, prefixes: &[], stream_prefix: false }
    }
}

/// A namespace declaration.
#[derive(Debug)]
pub(super) struct Declaration<'a> {
    /// Empty for the default namespace.
    prefix: &'a str,
    key: Key,
    pub(super) ns: Cow<'a, str>,
    /// The namespace as trees share it.
    shared: OnceCell<Arc<str>>,
    /// The depth of the element with the declaration; 0 outside the unit.
    pub(super) depth: u16,
}

impl<'a> Declaration<'a> {
    fn new(prefix: &'a str, ns: Cow<'a, str>, depth: u16) -> Self {
        Self { prefix, key: Key::of(prefix), ns, shared: OnceCell::new(), depth }
    }

    fn is_of(&self, prefix: &str, key: Key) -> bool {
        self.key == key && (key.is_exact() || self.prefix == prefix)
    }

    /// The namespace, for a tree: the same allocation each time.
    pub(super) fn shared_ns(&self) -> Arc<str> {
        self.shared.get_or_init(|| Arc::from(&*self.ns)).clone()
    }
}

/// The length and the first bytes of a prefix: nearly always one comparison of them decides whether two prefixes are equal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Key(u64);

impl Key {
    const BYTES: usize = 7;

    fn of(prefix: &str) -> Self {
        let mut key = [0; 8];
        key[0] = prefix.len().min(Self::BYTES + 1) as u8;
        for (byte, key) in prefix.bytes().zip(&mut key[1..]) {
            *key = byte;
        }
        Self(u64::from_ne_bytes(key))
    }

    /// Whether it contains the whole prefix.
    fn is_exact(self) -> bool {
        usize::from(self.0.to_ne_bytes()[0]) <= Self::BYTES
    }
}

/// The index of a declaration among those in scope.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(super) struct DeclarationIndex(u16);

impl DeclarationIndex {
    /// The index of the prefix `xml`, which needs no declaration.
    const XML: Self = Self(u16::MAX);
}

/// The stack of declarations in scope.
#[derive(Debug)]
pub(super) struct Scope<'a> {
    declarations: SmallVec<[Declaration<'a>; 8]>,
    /// [`Limits::namespaces_in_scope`]
    max: usize,
}

impl<'a> Scope<'a> {
    pub(super) fn new(outer: &Outer<'a>, limits: &Limits) -> Self {
        let mut declarations = SmallVec::new();
        let mut bind = |prefix, ns| declarations.push(Declaration::new(prefix, Cow::Borrowed(ns), 0));
        bind("", outer.default_ns);
        if outer.stream_prefix {
            bind("stream", ns::STREAMS);
        }
        for (prefix, ns) in outer.prefixes {
            bind(prefix, ns);
        }
        Self { declarations, max: usize::from(limits.namespaces_in_scope) }
    }

    /// Adds a declaration of the element at `depth`.
    ///
    /// # Errors
    /// [`Error::NamespaceDeclaration`] for what XML Namespaces §3 and §5 forbid, [`Error::DuplicateAttribute`] for a
    /// prefix declared twice on one element, [`Error::NamespaceTooLong`], [`Error::TooManyNamespaces`].
    pub(super) fn declare(&mut self, prefix: &'a str, ns: Cow<'a, str>, depth: u16) -> Result<(), Error> {
        let forbidden = match prefix {
            "" => ns == ns::XML || ns == ns::XMLNS,
            "xml" => ns != ns::XML,
            "xmlns" => true,
            _ => ns.is_empty() || ns == ns::XML || ns == ns::XMLNS,
        };
        if forbidden {
            return Err(Error::NamespaceDeclaration);
        }
        let declaration = Declaration::new(prefix, ns, depth);
        let mut siblings = self.declarations.iter().rev().take_while(|b| b.depth == depth);
        if siblings.any(|b| b.is_of(prefix, declaration.key)) {
            return Err(Error::DuplicateAttribute);
        }
        if declaration.ns.len() > Limits::NAMESPACE_BYTES_MAX {
            return Err(Error::NamespaceTooLong);
        }
        if self.declarations.len() >= self.max {
            return Err(Error::TooManyNamespaces);
        }
        self.declarations.push(declaration);
        Ok(())
    }

    /// Removes the declarations of elements deeper than `depth`.
    pub(super) fn leave(&mut self, depth: u16) {
        while self.declarations.last().is_some_and(|b| b.depth > depth) {
            self.declarations.pop();
        }
    }

    /// The index of the declaration of `prefix` (empty for the default namespace). It is valid while its
    /// element is open.
    pub(super) fn find(&self, prefix: &str) -> Result<DeclarationIndex, Error> {
        if prefix == "xml" {
            return Ok(DeclarationIndex::XML);
        }
        let key = Key::of(prefix);
        let found = self.declarations.iter().rposition(|b| b.is_of(prefix, key));
        found.map(|at| DeclarationIndex(at as u16)).ok_or(Error::UndeclaredPrefix)
    }

    /// The declaration with this index; none for that of `xml`.
    pub(super) fn at(&self, place: DeclarationIndex) -> Option<&Declaration<'a>> {
        self.declarations.get(usize::from(place.0))
    }

    /// The namespace of the declaration with this index.
    pub(super) fn ns(&self, place: DeclarationIndex) -> &str {
        self.at(place).map_or(ns::XML, |declaration| &*declaration.ns)
    }

    /// The same as a shared string, for a tree.
    pub(super) fn shared_ns(&self, place: DeclarationIndex) -> Arc<str> {
        self.at(place).map_or_else(|| ns::XML.into(), Declaration::shared_ns)
    }

    /// The declarations of the element at `depth`.
    pub(super) fn declared_at(&self, depth: u16) -> impl Iterator<Item = (&str, &str)> {
        self.declarations.iter().filter(move |b| b.depth == depth).map(|b| (b.prefix, &*b.ns))
    }
}
