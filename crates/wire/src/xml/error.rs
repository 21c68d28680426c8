//! Why received XML is refused.

/// The features of XML that XMPP forbids (RFC 6120 §11.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum Restriction {
    /// `<!DOCTYPE …>` or another markup declaration.
    #[error("document type declaration")]
    DocumentType,
    /// `<?…?>`, also an XML declaration anywhere but before a stream header.
    #[error("processing instruction")]
    ProcessingInstruction,
    /// `<!--…-->`
    #[error("comment")]
    Comment,
    /// A reference to an entity other than the five predefined ones.
    #[error("entity reference")]
    Entity,
}

/// What is wrong with XML that came in. Every variant ends the stream; [`Error::condition`] says how.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum Error {
    /// The bytes are not UTF-8.
    #[error("invalid UTF-8")]
    InvalidUtf8,
    /// The XML declaration names an encoding other than UTF-8.
    #[error("an encoding other than UTF-8")]
    UnsupportedEncoding,
    /// The XML declaration is malformed or names a version other than 1.x.
    #[error("malformed XML declaration")]
    Declaration,
    /// A control character or another that XML 1.0 §2.2 excludes, as itself or as a character reference.
    #[error("a character that XML forbids")]
    IllegalCharacter,
    /// A feature of XML that XMPP forbids.
    #[error("restricted XML: {0}")]
    Restricted(Restriction),
    /// An element or attribute name that is no qualified name.
    #[error("malformed name")]
    Name,
    /// A tag that is put together wrongly.
    #[error("malformed tag")]
    Tag,
    /// An attribute value that is not quoted or contains `<`.
    #[error("malformed attribute value")]
    AttributeValue,
    /// `&` that begins no reference.
    #[error("malformed reference")]
    Reference,
    /// `]]>` in text.
    #[error("the end of a CDATA section in text")]
    CdataEndInText,
    /// An end tag that does not match the open element.
    #[error("mismatched end tag")]
    MismatchedTag,
    /// The unit ends inside an element.
    #[error("unexpected end")]
    Incomplete,
    /// Something follows the unit's end, or the unit is empty.
    #[error("not exactly one element")]
    NotOneElement,
    /// The same attribute twice, also by way of two prefixes.
    #[error("duplicate attribute")]
    DuplicateAttribute,
    /// A prefix that nothing declares.
    #[error("undeclared prefix")]
    UndeclaredPrefix,
    /// A namespace declaration that XML Namespaces forbids: of `xml` or `xmlns`, or an empty one of a prefix.
    #[error("forbidden namespace declaration")]
    NamespaceDeclaration,
    /// Text between stanzas.
    #[error("text at stream level")]
    TextAtStreamLevel,
    /// The unit is larger than [`Limits::stanza_bytes`](super::Limits::stanza_bytes).
    #[error("unit too large")]
    TooLarge,
    /// Elements nest deeper than [`Limits::depth`](super::Limits::depth).
    #[error("elements nested too deep")]
    TooDeep,
    /// More than [`Limits::attributes`](super::Limits::attributes) on one element.
    #[error("too many attributes")]
    TooManyAttributes,
    /// More than [`Limits::namespaces`](super::Limits::namespaces) on one element, or more than
    /// [`Limits::namespaces_in_scope`](super::Limits::namespaces_in_scope) in force at once.
    #[error("too many namespace declarations")]
    TooManyNamespaces,
    /// More than [`Limits::CHILDREN_MAX`](super::Limits::CHILDREN_MAX) in one stanza.
    #[error("too many children of a stanza")]
    TooManyChildren,
    /// A namespace longer than [`Limits::NAMESPACE_BYTES_MAX`](super::Limits::NAMESPACE_BYTES_MAX).
    #[error("namespace too long")]
    NamespaceTooLong,
    /// The stream header has no prefix (RFC 6120 §4.8.5).
    #[error("a stream header without prefix")]
    HeaderPrefix,
    /// The root is in the streams namespace but is no complete `stream` start tag.
    #[error("not a stream header")]
    Header,
    /// The stream's version is no pair of numbers.
    #[error("malformed stream version")]
    HeaderVersion,
    /// The stream header or a stanza is in a namespace that cannot stand there.
    #[error("invalid namespace")]
    InvalidNamespace,
    /// An element named like a stanza in a namespace that has no stanzas.
    #[error("unsupported stanza type")]
    UnsupportedStanza,
}
