//! Why an operation on a topic is not done, and how that is said.

use super::Outcome;
use crate::model::Fields;
use crate::ports::{Fault, Missing};
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, StanzaError};
use carillon_wire::xml::Element;

/// Why an operation on a topic is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such topic, item or account.
    NotFound,
    /// There is a topic of that name already.
    Exists,
    /// The actor's affiliation does not allow it.
    Forbidden,
    /// Only members may read it.
    Closed,
    /// An account may subscribe only itself.
    NotItself,
    /// The account does not follow the topic.
    NotSubscribed,
    /// The topic has other values of these fields than the publisher wants.
    PreconditionNotMet(Fields),
    /// There has to be an item.
    ItemRequired,
    /// The topic has no items: followers are told that something happened.
    ItemForbidden,
    /// The item has to have a payload.
    PayloadRequired,
    /// The request is not allowed or makes no sense.
    Unacceptable(Unacceptable),
    /// The topic would have more affiliations than it may.
    TooManyAffiliations,
    /// The account owns as many topics as it may.
    TooManyTopics,
    /// The account follows as many topics as it may.
    TooManySubscriptions,
    /// There is no room for it.
    NoRoom(NoRoom),
    /// Too many operations wait for the topic.
    Crowded,
    /// Items come faster than followers can be given them.
    TooFast,
    /// The domain has as many topics as its policy allows.
    DomainFull,
    /// The clients of the domain were sent as much as its policy allows.
    GivenAll,
    /// The store could not do it.
    Fault(Fault),
}

crate::form! {
    enum Refusal {
        0 = NotFound,
        1 = Exists,
        2 = Forbidden,
        3 = Closed,
        4 = NotItself,
        5 = NotSubscribed,
        6 = PreconditionNotMet(fields),
        7 = ItemRequired,
        8 = ItemForbidden,
        9 = PayloadRequired,
        10 = Unacceptable(what),
        11 = TooManyAffiliations,
        12 = TooManyTopics,
        13 = TooManySubscriptions,
        14 = NoRoom(what),
        15 = Crowded,
        16 = TooFast,
        17 = Fault(fault),
        18 = DomainFull,
        19 = GivenAll,
    }
}

/// What a topic cannot be or have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unacceptable {
    /// A title that is too long.
    Title,
    /// So many kept items, or none.
    MaxItems,
    /// A name that is empty or too long.
    Name,
    /// Nobody who owns it.
    NoOwner,
}

crate::form! { enum Unacceptable { 0 = Title, 1 = MaxItems, 2 = Name, 3 = NoOwner } }

impl Unacceptable {
    fn text(self) -> &'static str {
        match self {
            Unacceptable::Title => "a title is at most 256 bytes",
            Unacceptable::MaxItems => "max_items is 0, or more than this service keeps",
            Unacceptable::Name => "a topic's name is 1 to 1023 bytes",
            Unacceptable::NoOwner => "a topic must keep an owner",
        }
    }
}

/// What is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// An account has as many nodes as it may.
    Nodes,
    /// An account's nodes hold as much as they may.
    NodeBytes,
    /// As much is stored of the domain as its policy allows.
    DomainBytes,
}

/// What is said where as much is stored of a domain as its policy allows.
pub(crate) const DOMAIN_IS_FULL: &str =
    "as much is stored of the domain as its policy's `stored_bytes_max` allows";

crate::form! { enum NoRoom { 0 = Nodes, 1 = NodeBytes, 2 = DomainBytes } }

impl NoRoom {
    fn text(self) -> &'static str {
        match self {
            NoRoom::Nodes => "you have as many nodes as an account may",
            NoRoom::NodeBytes => "your nodes hold as much as those of an account may",
            NoRoom::DomainBytes => DOMAIN_IS_FULL,
        }
    }
}

impl Refusal {
    /// For a command.
    pub(crate) fn outcome(self) -> Outcome {
        match self {
            Refusal::Fault(fault) => fault.into(),
            refusal => Outcome::Topic(Err(refusal)),
        }
    }
}

impl From<Fault> for Outcome {
    fn from(fault: Fault) -> Outcome {
        match fault {
            Fault::Unknown => Outcome::Unknown,
            Fault::Busy | Fault::Closed | Fault::Broken => Outcome::Unavailable,
        }
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Refusal {
        Refusal::Fault(fault)
    }
}

impl From<Missing> for Refusal {
    fn from(Missing: Missing) -> Refusal {
        Refusal::NotFound
    }
}

impl From<Refusal> for StanzaError {
    /// With the conditions that XEP-0060 names for each case.
    fn from(refusal: Refusal) -> StanzaError {
        let error = StanzaError::new(match refusal {
            Refusal::NotFound => Condition::ItemNotFound,
            Refusal::Exists | Refusal::PreconditionNotMet(_) => Condition::Conflict,
            Refusal::Forbidden => Condition::Forbidden,
            Refusal::Closed => Condition::NotAllowed,
            Refusal::NotItself
            | Refusal::ItemRequired
            | Refusal::ItemForbidden
            | Refusal::PayloadRequired => Condition::BadRequest,
            Refusal::NotSubscribed => Condition::UnexpectedRequest,
            Refusal::Unacceptable(_) => Condition::NotAcceptable,
            Refusal::TooManyAffiliations | Refusal::TooManyTopics | Refusal::TooManySubscriptions => {
                Condition::PolicyViolation
            }
            Refusal::NoRoom(_)
            | Refusal::Crowded
            | Refusal::TooFast
            | Refusal::DomainFull
            | Refusal::GivenAll
            | Refusal::Fault(Fault::Busy) => Condition::ResourceConstraint,
            Refusal::Fault(Fault::Closed) => Condition::ServiceUnavailable,
            Refusal::Fault(Fault::Broken | Fault::Unknown) => Condition::InternalServerError,
        });
        match refusal {
            Refusal::PreconditionNotMet(fields) => {
                let names = fields.names().collect::<Vec<_>>().join(", ");
                error
                    .with_app(app("precondition-not-met"))
                    .with_text(format!("it has other values of {names}"))
            }
            Refusal::ItemRequired => error.with_app(app("item-required")),
            Refusal::ItemForbidden => error.with_app(app("item-forbidden")),
            Refusal::PayloadRequired => error.with_app(app("payload-required")),
            Refusal::Closed => error.with_app(app("closed-node")),
            Refusal::NotItself => error.with_app(app("invalid-jid")),
            // XEP-0060 §6.2.3.2 says `cancel`, where RFC 6120 says `wait`.
            Refusal::NotSubscribed => {
                error.with_kind(carillon_wire::stanza::ErrorType::Cancel).with_app(app("not-subscribed"))
            }
            Refusal::Fault(Fault::Unknown) => error.with_text("it is unknown whether this was done"),
            Refusal::Unacceptable(what) => error.with_text(what.text()),
            Refusal::NoRoom(what) => error.with_text(what.text()),
            Refusal::TooManyAffiliations => error.with_text("the topic has as many affiliations as it may"),
            Refusal::TooManyTopics => error.with_text("you own as many topics as an account may"),
            // XEP-0060 §6.1.3.9
            Refusal::TooManySubscriptions => error
                .with_text("you follow as many topics as an account may")
                .with_app(app("too-many-subscriptions")),
            Refusal::Crowded => error.with_text("too many operations wait for this topic").with_app(later()),
            Refusal::TooFast => error
                .with_text("items come faster than the topic's followers can be given them")
                .with_app(later()),
            Refusal::DomainFull => {
                error.with_text("the domain has as many topics as its policy's `topics_max` allows")
            }
            Refusal::GivenAll => error
                .with_text(
                    "the domain's clients are sent as much as its policy's `bytes_out_per_second` allows",
                )
                .with_app(later()),
            _ => error,
        }
    }
}

/// When it may be tried again: about as long as it takes to do what waits for a topic.
fn later() -> Element {
    Element::new("retry-after", ns::RETRY).with_attr("seconds", "1")
}

fn app(name: &str) -> Element {
    Element::new(name, ns::PUBSUB_ERRORS)
}
