//! How much a peer may send.

/// How much a peer may send in one top-level unit. Beyond any of these the stream ends with `policy-violation`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of one stream header, stanza or nonza, tags included.
    pub stanza_bytes: usize,
    /// Elements open at once inside one unit; the unit itself is the first. Never more than [`Limits::DEPTH_MAX`].
    pub depth: u16,
    /// Attributes of one element, namespace declarations not counted. Never more than [`Limits::ATTRIBUTES_MAX`].
    pub attributes: u16,
    /// Namespace declarations of one element.
    pub namespaces: u16,
}

impl Limits {
    /// No element nests deeper than this, whatever is configured, so that a tree can be walked by recursion.
    pub const DEPTH_MAX: u16 = 256;

    /// No element has more attributes than this, whatever is configured: each is compared with all others.
    pub const ATTRIBUTES_MAX: u16 = 1024;

    /// What a peer may send before it has authenticated: 16 KiB, 16 levels, 16 attributes, 8 declarations.
    pub const fn before_auth() -> Self {
        Self { stanza_bytes: 16 * 1024, depth: 16, attributes: 16, namespaces: 8 }
    }

    /// No limits but those that nothing may exceed: for bytes that have been read once already or are the server's own.
    pub const fn trusted() -> Self {
        Self { stanza_bytes: u32::MAX as usize, depth: u16::MAX, attributes: u16::MAX, namespaces: u16::MAX }
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
    /// 256 KiB, 64 levels, 64 attributes, 16 declarations.
    fn default() -> Self {
        Self { stanza_bytes: 256 * 1024, depth: 64, attributes: 64, namespaces: 16 }
    }
}
