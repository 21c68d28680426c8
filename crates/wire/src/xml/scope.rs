//! Which namespaces are in force (XML Namespaces §5, §6).

use std::borrow::Cow;

use smallvec::SmallVec;

use super::Error;
use crate::ns;

/// The longest namespace, in bytes. A short name may stand for it many times, and each time costs its full length when
/// a tree is built or written.
const NAMESPACE_BYTES_MAX: usize = 256;

/// The most declarations in force at once: each name is looked up among them.
const DECLARATIONS_MAX: usize = 128;

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
    pub(super) prefix: &'a str,
    pub(super) ns: Cow<'a, str>,
    /// How deep the element with the declaration is; 0 for what surrounds the unit.
    pub(super) depth: u16,
}

impl Binding<'_> {
    fn is_of(&self, prefix: &str) -> bool {
        // Comparing nothing with nothing is far from free: `memcmp` may read where a masked load faults.
        self.prefix.len() == prefix.len() && (prefix.is_empty() || self.prefix == prefix)
    }
}

/// The stack of declarations in force.
#[derive(Debug)]
pub(super) struct Scope<'a> {
    bindings: SmallVec<[Binding<'a>; 8]>,
}

impl<'a> Scope<'a> {
    pub(super) fn new(outer: &Outer<'a>) -> Self {
        let mut bindings = SmallVec::new();
        let mut bind = |prefix, ns| bindings.push(Binding { prefix, ns: Cow::Borrowed(ns), depth: 0 });
        bind("", outer.default_ns);
        if outer.stream_prefix {
            bind("stream", ns::STREAMS);
        }
        for (prefix, ns) in outer.prefixes {
            bind(prefix, ns);
        }
        Self { bindings }
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
        if self.bindings.iter().rev().take_while(|b| b.depth == depth).any(|b| b.is_of(prefix)) {
            return Err(Error::DuplicateAttribute);
        }
        if ns.len() > NAMESPACE_BYTES_MAX {
            return Err(Error::NamespaceTooLong);
        }
        if self.bindings.len() >= DECLARATIONS_MAX {
            return Err(Error::TooManyNamespaces);
        }
        self.bindings.push(Binding { prefix, ns, depth });
        Ok(())
    }

    /// Ends the declarations of elements deeper than `depth`.
    pub(super) fn leave(&mut self, depth: u16) {
        while self.bindings.last().is_some_and(|b| b.depth > depth) {
            self.bindings.pop();
        }
    }

    /// The declaration in force of `prefix` (empty for the default namespace). Not for `xml`, which needs none.
    pub(super) fn find(&self, prefix: &str) -> Result<&Binding<'a>, Error> {
        self.bindings.iter().rev().find(|b| b.is_of(prefix)).ok_or(Error::UndeclaredPrefix)
    }

    /// All declarations in force that belong to the element at `depth`.
    pub(super) fn declared_at(&self, depth: u16) -> impl Iterator<Item = (&str, &str)> {
        self.bindings.iter().filter(move |b| b.depth == depth).map(|b| (b.prefix, &*b.ns))
    }
}
