//! Stream errors (RFC 6120 §4.9).

use crate::frame::Framing;
use crate::ns;
use crate::xml::writer::Writer;
use crate::xml::{Element, Error};

words! {
    /// The conditions of stream errors (RFC 6120 §4.9.3).
    pub enum Condition {
        /// XML that cannot be processed.
        BadFormat = "bad-format",
        /// A namespace prefix that is unsupported, or none where one is needed.
        BadNamespacePrefix = "bad-namespace-prefix",
        /// A newer stream of the same entity replaces this one.
        Conflict = "conflict",
        /// Nothing was received for too long.
        ConnectionTimeout = "connection-timeout",
        /// The domain is no longer served here.
        HostGone = "host-gone",
        /// The domain is not served here.
        HostUnknown = "host-unknown",
        /// A stanza between servers lacks an address.
        ImproperAddressing = "improper-addressing",
        /// An error of the server.
        InternalServerError = "internal-server-error",
        /// The `from` is not an address of the sender.
        InvalidFrom = "invalid-from",
        /// The streams or the content namespace is wrong.
        InvalidNamespace = "invalid-namespace",
        /// XML that is well-formed but not valid.
        InvalidXml = "invalid-xml",
        /// Stanzas before authentication.
        NotAuthorized = "not-authorized",
        /// XML that is not well-formed or not namespace-well-formed.
        NotWellFormed = "not-well-formed",
        /// A local policy is violated, such as a size limit.
        PolicyViolation = "policy-violation",
        /// A connection needed for authentication cannot be made.
        RemoteConnectionFailed = "remote-connection-failed",
        /// The stream must be restarted.
        Reset = "reset",
        /// The server lacks resources.
        ResourceConstraint = "resource-constraint",
        /// XML features that XMPP forbids.
        RestrictedXml = "restricted-xml",
        /// Connect elsewhere.
        SeeOtherHost = "see-other-host",
        /// The server is shutting down.
        SystemShutdown = "system-shutdown",
        /// None of the other conditions.
        UndefinedCondition = "undefined-condition",
        /// An encoding other than UTF-8.
        UnsupportedEncoding = "unsupported-encoding",
        /// The other side does not support a mandatory feature.
        UnsupportedFeature = "unsupported-feature",
        /// A first-level element that is not supported.
        UnsupportedStanzaType = "unsupported-stanza-type",
        /// A version of XMPP that is not supported.
        UnsupportedVersion = "unsupported-version",
    }
}

impl Error {
    /// The stream error to end the stream with (RFC 6120 §4.9.3).
    pub fn condition(&self) -> Condition {
        match self {
            // §4.9.3.22 names violations of UTF-8's rules.
            Self::InvalidUtf8 | Self::UnsupportedEncoding => Condition::UnsupportedEncoding,
            Self::Restricted(_) => Condition::RestrictedXml,
            Self::TooLarge
            | Self::TooDeep
            | Self::TooManyAttributes
            | Self::TooManyNamespaces
            | Self::TooManyChildren
            | Self::NamespaceTooLong => Condition::PolicyViolation,
            Self::TextAtStreamLevel | Self::Header => Condition::BadFormat,
            Self::HeaderPrefix => Condition::BadNamespacePrefix,
            Self::HeaderVersion => Condition::UnsupportedVersion,
            Self::InvalidNamespace => Condition::InvalidNamespace,
            Self::UnsupportedStanza => Condition::UnsupportedStanzaType,
            // §11.3 prefers this one for what is not namespace-well-formed, undeclared prefixes included.
            Self::Declaration
            | Self::IllegalCharacter
            | Self::Name
            | Self::Tag
            | Self::AttributeValue
            | Self::Reference
            | Self::CdataEndInText
            | Self::MismatchedTag
            | Self::Incomplete
            | Self::NotOneElement
            | Self::DuplicateAttribute
            | Self::UndeclaredPrefix
            | Self::NamespaceDeclaration => Condition::NotWellFormed,
        }
    }
}

/// Appends a stream error, with a condition of the application's own if there is one (RFC 6120 §4.9.4). The stream must be closed after it.
pub fn write_error(
    out: &mut Vec<u8>,
    condition: Condition,
    text: Option<&str>,
    specific: Option<&Element>,
    framing: Framing,
) {
    let mut writer = Writer::new(out);
    start(&mut writer, framing);
    writer.empty(condition.as_str(), ns::STREAM_ERRORS);
    if let Some(text) = text {
        writer.start("text").attr("xmlns", ns::STREAM_ERRORS).attr("xml:lang", "en").close_start();
        writer.text(text).end("text");
    }
    if let Some(specific) = specific {
        // It declares its own namespace: the parent's is another, or none.
        specific.write(out, "");
    }
    Writer::new(out).end("stream:error");
}

/// Appends the stream error `see-other-host` with `host`, which is `domain`, `domain:port` or an IP address likewise.
pub fn write_see_other_host(out: &mut Vec<u8>, host: &str, framing: Framing) {
    let mut writer = Writer::new(out);
    start(&mut writer, framing);
    let name = Condition::SeeOtherHost.as_str();
    writer.start(name).attr("xmlns", ns::STREAM_ERRORS).close_start().text(host).end(name);
    writer.end("stream:error");
}

fn start(writer: &mut Writer<'_>, framing: Framing) {
    writer.start("stream:error");
    if framing == Framing::WebSocket {
        writer.attr("xmlns:stream", ns::STREAMS);
    }
    writer.close_start();
}

/// A stream error as read by the side that receives it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamError {
    /// The condition; [`Condition::UndefinedCondition`] if it is unknown.
    pub condition: Condition,
    /// An explanation for humans.
    pub text: Option<String>,
    /// Where to go, with [`Condition::SeeOtherHost`].
    pub other_host: Option<String>,
    /// A condition of the server's own beside it.
    pub app: Option<Box<Element>>,
}

impl StreamError {
    /// Reads `<stream:error/>`; `None` if the element is another.
    pub fn parse(element: &Element) -> Option<Self> {
        if !element.is("error", ns::STREAMS) {
            return None;
        }
        let mut error =
            Self { condition: Condition::UndefinedCondition, text: None, other_host: None, app: None };
        for child in element.children() {
            if child.ns() != ns::STREAM_ERRORS {
                error.app.get_or_insert_with(|| Box::new(child.clone()));
            } else if child.name() == "text" {
                error.text = Some(child.text());
            } else if let Some(condition) = Condition::from_word(child.name()) {
                error.condition = condition;
                error.other_host = (condition == Condition::SeeOtherHost).then(|| child.text());
            }
        }
        Some(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_on_tcp() {
        let mut out = Vec::new();
        write_error(&mut out, Condition::PolicyViolation, Some("too <large>"), None, Framing::Tcp);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "<stream:error><policy-violation xmlns='urn:ietf:params:xml:ns:xmpp-streams'/>\
             <text xmlns='urn:ietf:params:xml:ns:xmpp-streams' xml:lang='en'>too &lt;large&gt;</text></stream:error>"
        );
    }

    #[test]
    fn every_error_is_read_back() {
        for &condition in Condition::ALL {
            let mut out = Vec::new();
            write_error(&mut out, condition, Some("why"), None, Framing::WebSocket);
            let read = StreamError::parse(&Element::parse(&out, "").unwrap()).unwrap();
            assert_eq!((read.condition, read.text.as_deref()), (condition, Some("why")));
        }
        assert_eq!(StreamError::parse(&Element::new("error", ns::CLIENT)), None);
    }

    #[test]
    fn a_condition_of_its_own_is_kept() {
        let text = "<stream:error xmlns:stream='http://etherx.jabber.org/streams'>\
                    <resource-constraint xmlns='urn:ietf:params:xml:ns:xmpp-streams'/>\
                    <retry-after xmlns='urn:carillon:retry:0' seconds='7'/></stream:error>";
        let read = StreamError::parse(&Element::parse(text.as_bytes(), "").unwrap()).unwrap();
        assert_eq!((read.condition, read.text), (Condition::ResourceConstraint, None));
        assert!(
            read.app.is_some_and(|app| app.is("retry-after", ns::RETRY) && app.attr("seconds") == Some("7"))
        );
    }

    #[test]
    fn another_host() {
        let mut out = Vec::new();
        write_see_other_host(&mut out, "[2001:db8::1]:5222", Framing::WebSocket);
        let read = StreamError::parse(&Element::parse(&out, "").unwrap()).unwrap();
        assert_eq!(read.condition, Condition::SeeOtherHost);
        assert_eq!(read.other_host.as_deref(), Some("[2001:db8::1]:5222"));
    }
}
