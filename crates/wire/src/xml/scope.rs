//! Which namespaces are in force (XML Namespaces §5, §6).

use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::Arc;

use smallvec::SmallVec;

use super::error::Error;
use super::limits::Limits;
use crate::ns;

/// The declarations in force around a unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outer<'a> {
    /// The default namespace; empty where there is none.
    pub(crate) default_ns: &'a str,
    /// Prefixes with their namespaces.
    pub(crate) prefixes: &'a [(Box<str>, Box<str>)],
    /// Whether `stream` is bound as the usual stream header binds it.
    pub(crate) stream_prefix: bool,
}

impl<'a> Outer<'a> {
    /// Nothing but a default namespace.
    pub(crate) fn default_ns(default_ns: &'a str) -> Self {
        Self { default_ns, prefixes: &[], stream_prefix: false }
    }
}

/// One declaration.
#[derive(Debug)]
pub(super) struct Binding<'a> {
    /// Empty for the default namespace.
    prefix: &'a str,
    key: Key,
    pub(super) ns: Cow<'a, str>,
    /// What trees that are made share of it.
    shared: OnceCell<Arc<str>>,
    /// How deep the element with the declaration is; 0 for what surrounds the unit.
    pub(super) depth: u16,
}

impl<'a> Binding<'a> {
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

/// Length and first bytes of a prefix: nearly always they tell whether two are the same, by one comparison.
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

    /// Whether it tells the whole prefix.
    fn is_exact(self) -> bool {
        usize::from(self.0.to_ne_bytes()[0]) <= Self::BYTES
    }
}

/// The place of a declaration among those in force.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(super) struct Place(u16);

impl Place {
    /// Of the prefix `xml`, which needs no declaration.
    const XML: Self = Self(u16::MAX);
}

/// The stack of declarations in force.
#[derive(Debug)]
pub(super) struct Scope<'a> {
    bindings: SmallVec<[Binding<'a>; 8]>,
    /// [`Limits::namespaces_in_scope`]
    max: usize,
}

impl<'a> Scope<'a> {
    pub(super) fn new(outer: &Outer<'a>, limits: &Limits) -> Self {
        let mut bindings = SmallVec::new();
        let mut bind = |prefix, ns| bindings.push(Binding::new(prefix, Cow::Borrowed(ns), 0));
        bind("", outer.default_ns);
        if outer.stream_prefix {
            bind("stream", ns::STREAMS);
        }
        for (prefix, ns) in outer.prefixes {
            bind(prefix, ns);
        }
        Self { bindings, max: usize::from(limits.namespaces_in_scope) }
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
        let binding = Binding::new(prefix, ns, depth);
        let mut siblings = self.bindings.iter().rev().take_while(|b| b.depth == depth);
        if siblings.any(|b| b.is_of(prefix, binding.key)) {
            return Err(Error::DuplicateAttribute);
        }
        if binding.ns.len() > Limits::NAMESPACE_BYTES_MAX {
            return Err(Error::NamespaceTooLong);
        }
        if self.bindings.len() >= self.max {
            return Err(Error::TooManyNamespaces);
        }
        self.bindings.push(binding);
        Ok(())
    }

    /// Ends the declarations of elements deeper than `depth`.
    pub(super) fn leave(&mut self, depth: u16) {
        while self.bindings.last().is_some_and(|b| b.depth > depth) {
            self.bindings.pop();
        }
    }

    /// Where the declaration in force of `prefix` is (empty for the default namespace). It stays there while its
    /// element is open.
    pub(super) fn find(&self, prefix: &str) -> Result<Place, Error> {
        if prefix == "xml" {
            return Ok(Place::XML);
        }
        let key = Key::of(prefix);
        let found = self.bindings.iter().rposition(|b| b.is_of(prefix, key));
        found.map(|at| Place(at as u16)).ok_or(Error::UndeclaredPrefix)
    }

    /// The declaration in this place; none for that of `xml`.
    pub(super) fn at(&self, place: Place) -> Option<&Binding<'a>> {
        self.bindings.get(usize::from(place.0))
    }

    /// The namespace of the declaration in this place.
    pub(super) fn ns(&self, place: Place) -> &str {
        self.at(place).map_or(ns::XML, |binding| &*binding.ns)
    }

    /// The same, for a tree.
    pub(super) fn shared_ns(&self, place: Place) -> Arc<str> {
        self.at(place).map_or_else(|| ns::XML.into(), Binding::shared_ns)
    }

    /// All declarations in force that belong to the element at `depth`.
    pub(super) fn declared_at(&self, depth: u16) -> impl Iterator<Item = (&str, &str)> {
        self.bindings.iter().filter(move |b| b.depth == depth).map(|b| (b.prefix, &*b.ns))
    }
}
