//! The limits of what a peer may send.

/// The limits of one top-level unit. Exceeding any of them ends the stream with `policy-violation`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of one stream header, stanza or nonza, tags included.
    pub stanza_bytes: usize,
    /// Nested elements in one unit, including the unit itself. Never more than [`Limits::DEPTH_MAX`].
    pub depth: u16,
    /// Attributes of one element, namespace declarations not counted. Never more than [`Limits::ATTRIBUTES_MAX`].
    pub attributes: u16,
    /// Namespace declarations of one element.
    pub namespaces: u16,
    /// Namespace declarations in scope at the same time, including those of the stream header: each name is looked up among them.
    pub namespaces_in_scope: u16,
}

impl Limits {
    /// No element nests deeper than this, whatever is configured, so that a tree can be walked by recursion.
    pub const DEPTH_MAX: u16 = 256;

    /// No element has more attributes than this, whatever is configured.
    pub const ATTRIBUTES_MAX: u16 = 1024;

    /// No stanza has more children than this, whatever is configured: features look for theirs among them.
    pub const CHILDREN_MAX: usize = 256;

    /// No namespace is longer than this, in bytes, whatever is configured. A short prefix may stand for it many times,
    /// and each time costs its full length when the payload is written anew.
    pub const NAMESPACE_BYTES_MAX: usize = 256;

    /// What a peer may send before it has authenticated: 16 KiB, 16 levels, 16 attributes, 8 declarations and 32 in
    /// force.
    pub const fn before_auth() -> Self {
        Self { stanza_bytes: 16 * 1024, depth: 16, attributes: 16, namespaces: 8, namespaces_in_scope: 32 }
    }

    /// No limits but the absolute ones: for bytes that were read before or that the server produced.
    pub const fn trusted() -> Self {
        Self {
            stanza_bytes: u32::MAX as usize,
            depth: u16::MAX,
            attributes: u16::MAX,
            namespaces: u16::MAX,
            namespaces_in_scope: u16::MAX,
        }
    }

    /// `depth`, bounded by [`Limits::DEPTH_MAX`].
    pub(crate) fn depth_max(&self) -> u16 {
        self.depth.min(Self::DEPTH_MAX)
    }

    /// `attributes`, bounded by [`Limits::ATTRIBUTES_MAX`].
    pub(crate) fn attributes_max(&self) -> u16 {
        self.attributes.min(Self::ATTRIBUTES_MAX)
    }
}

impl Default for Limits {
    /// 256 KiB, 64 levels, 64 attributes, 16 declarations and 128 in force.
    fn default() -> Self {
        Self { stanza_bytes: 256 * 1024, depth: 64, attributes: 64, namespaces: 16, namespaces_in_scope: 128 }
    }
}
