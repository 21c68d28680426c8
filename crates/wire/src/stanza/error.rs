//! Stanza errors (RFC 6120 §8.3).

use std::borrow::Cow;

use crate::ns;
use crate::xml::Element;

words! {
    /// What the sender may do about an error (RFC 6120 §8.3.2).
    pub enum ErrorType {
        /// Try again with credentials.
        Auth = "auth",
        /// Do not try again.
        Cancel = "cancel",
        /// Continue: it was only a warning.
        Continue = "continue",
        /// Try again with other data.
        Modify = "modify",
        /// Try again later.
        Wait = "wait",
    }
}

words! {
    /// The conditions of stanza errors (RFC 6120 §8.3.3).
    pub enum Condition {
        /// The stanza breaks the protocol's rules.
        BadRequest = "bad-request",
        /// Something with that name exists already.
        Conflict = "conflict",
        /// The feature does not exist here.
        FeatureNotImplemented = "feature-not-implemented",
        /// The sender may not do that.
        Forbidden = "forbidden",
        /// The recipient has another address now.
        Gone = "gone",
        /// An error of the server.
        InternalServerError = "internal-server-error",
        /// The addressed thing does not exist.
        ItemNotFound = "item-not-found",
        /// An address is malformed.
        JidMalformed = "jid-malformed",
        /// The stanza does not meet criteria that the recipient set.
        NotAcceptable = "not-acceptable",
        /// The action is not allowed for anyone.
        NotAllowed = "not-allowed",
        /// The sender must authenticate first.
        NotAuthorized = "not-authorized",
        /// A local policy is violated.
        PolicyViolation = "policy-violation",
        /// The recipient is not available now.
        RecipientUnavailable = "recipient-unavailable",
        /// The recipient has another address for a while.
        Redirect = "redirect",
        /// The sender must register first.
        RegistrationRequired = "registration-required",
        /// The other domain does not exist.
        RemoteServerNotFound = "remote-server-not-found",
        /// The other domain does not answer.
        RemoteServerTimeout = "remote-server-timeout",
        /// The server or recipient is busy.
        ResourceConstraint = "resource-constraint",
        /// The service is not offered here.
        ServiceUnavailable = "service-unavailable",
        /// The sender must subscribe first.
        SubscriptionRequired = "subscription-required",
        /// None of the other conditions.
        UndefinedCondition = "undefined-condition",
        /// The stanza came at the wrong time.
        UnexpectedRequest = "unexpected-request",
    }
}

impl Condition {
    /// The type that RFC 6120 §8.3.3 associates with the condition, the first where it names several.
    pub const fn default_type(self) -> ErrorType {
        match self {
            Self::Forbidden
            | Self::NotAuthorized
            | Self::RegistrationRequired
            | Self::SubscriptionRequired => ErrorType::Auth,
            Self::BadRequest
            | Self::JidMalformed
            | Self::NotAcceptable
            | Self::PolicyViolation
            | Self::Redirect => ErrorType::Modify,
            Self::RecipientUnavailable
            | Self::RemoteServerTimeout
            | Self::ResourceConstraint
            | Self::UnexpectedRequest => ErrorType::Wait,
            Self::Conflict
            | Self::FeatureNotImplemented
            | Self::Gone
            | Self::InternalServerError
            | Self::ItemNotFound
            | Self::NotAllowed
            | Self::RemoteServerNotFound
            | Self::ServiceUnavailable
            | Self::UndefinedCondition => ErrorType::Cancel,
        }
    }
}

/// Why a stanza is refused: the content of `<error/>`.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{condition}")]
pub struct StanzaError {
    /// What the sender may do about it.
    pub kind: ErrorType,
    /// The condition.
    pub condition: Condition,
    /// An explanation for humans, in English.
    pub text: Option<Cow<'static, str>>,
    /// A condition of the feature's own namespace.
    pub app: Option<Element>,
}

impl StanzaError {
    /// An error of the type that RFC 6120 associates with the condition.
    pub const fn new(condition: Condition) -> Self {
        Self { kind: condition.default_type(), condition, text: None, app: None }
    }

    /// The error with another type.
    #[must_use]
    pub fn with_kind(mut self, kind: ErrorType) -> Self {
        self.kind = kind;
        self
    }

    /// The error with an explanation for humans.
    #[must_use]
    pub fn with_text(mut self, text: impl Into<Cow<'static, str>>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// The error with a condition of the feature's own.
    #[must_use]
    pub fn with_app(mut self, app: Element) -> Self {
        self.app = Some(app);
        self
    }

    /// `<error/>` in `jabber:client`.
    pub fn to_element(&self) -> Element {
        let mut error = Element::new("error", ns::CLIENT).with_attr("type", self.kind.as_str());
        error.push(Element::new(self.condition.as_str(), ns::STANZA_ERRORS));
        if let Some(text) = &self.text {
            let text = Element::new("text", ns::STANZA_ERRORS).with_attr("xml:lang", "en").with_text(&**text);
            error.push(text);
        }
        if let Some(app) = &self.app {
            error.push(app.clone());
        }
        error
    }

    /// Reads `<error/>` in `jabber:client`; `None` if the element is another. An unknown or missing condition is
    /// [`Condition::UndefinedCondition`]; an unknown type is the condition's default.
    pub fn parse(element: &Element) -> Option<Self> {
        if !element.is("error", ns::CLIENT) {
            return None;
        }
        let mut error = Self::new(Condition::UndefinedCondition);
        for child in element.children() {
            if child.ns() != ns::STANZA_ERRORS {
                error.app.get_or_insert_with(|| child.clone());
            } else if child.name() == "text" {
                error.text.get_or_insert_with(|| child.text().into());
            } else if let Some(condition) = Condition::from_word(child.name()) {
                error.condition = condition;
                error.kind = condition.default_type();
            }
        }
        if let Some(kind) = element.attr("type").and_then(ErrorType::from_word) {
            error.kind = kind;
        }
        Some(error)
    }
}
