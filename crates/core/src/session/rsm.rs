//! Lists page by page (XEP-0059): what a client asks for, and what an answer says of itself.

use crate::error::StanzaError;
use crate::model::{ArchiveId, ArchiveStart, ItemsFrom};
use carillon_wire::ns;
use carillon_wire::stanza::Condition;
use carillon_wire::xml::Element;

/// The part of a list that a client asks for.
#[derive(Debug)]
pub(crate) struct Page {
    asked: bool,
    /// More than there can be in a page is as many as there can be.
    max: Option<u32>,
    after: Option<Box<str>>,
    /// Empty for the end of the list.
    before: Option<Box<str>>,
}

impl Page {
    /// Reads the `<set/>` in `parent`; without one, the list is read from its beginning.
    pub(crate) fn of(parent: &Element) -> Result<Page, StanzaError> {
        let Some(set) = parent.child("set", ns::RSM) else {
            return Ok(Page { asked: false, max: None, after: None, before: None });
        };
        let text = |name| set.child(name, ns::RSM).map(|child| child.text().trim().to_owned());
        if set.child("index", ns::RSM).is_some() {
            // XEP-0059 §2.6
            let text = "pages are found by the entry before or behind them";
            return Err(StanzaError::new(Condition::FeatureNotImplemented).with_text(text));
        }
        let max =
            text("max").map(|max| max.parse().map_err(|_| bad_request("max is a number"))).transpose()?;
        let (after, before) = (text("after").filter(|after| !after.is_empty()), text("before"));
        if after.is_some() && before.is_some() {
            return Err(bad_request("either after or before"));
        }
        Ok(Page { asked: true, max, after: after.map(Into::into), before: before.map(Into::into) })
    }

    /// Whether the answer must say which part of the list it is.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked
    }

    /// The size of the page: what a client wants, or `usual`; at most `most`.
    pub(crate) fn max(&self, usual: u16, most: u16) -> u16 {
        self.max.map_or(usual, |max| u16::try_from(max).unwrap_or(most)).min(most)
    }

    /// Where a page of items begins, or ends.
    pub(crate) fn from(&self) -> ItemsFrom {
        match (&self.after, &self.before) {
            (Some(after), _) => ItemsFrom::After(after.clone()),
            (None, Some(before)) if before.is_empty() => ItemsFrom::Oldest,
            (None, Some(before)) => ItemsFrom::Before(before.clone()),
            (None, None) => ItemsFrom::Newest,
        }
    }

    /// Where a page of numbered messages begins. What is no number names nothing that there is.
    pub(crate) fn start(&self) -> Result<ArchiveStart, StanzaError> {
        Ok(match (&self.after, &self.before) {
            (Some(after), _) => ArchiveStart::After(number(after)?),
            (None, Some(before)) if before.is_empty() => ArchiveStart::Last,
            (None, Some(before)) => ArchiveStart::Before(number(before)?),
            (None, None) => ArchiveStart::First,
        })
    }

    /// The entry after which a page begins, for a list that can only be read forward.
    pub(crate) fn after(&self) -> Result<Option<Box<str>>, StanzaError> {
        match self.before {
            None => Ok(self.after.clone()),
            Some(_) => {
                let error = StanzaError::new(Condition::FeatureNotImplemented);
                Err(error.with_text("this list is read forward"))
            }
        }
    }
}

/// The part of a list that an answer is: its first and its last entry, and the size of the list where it is known.
pub(crate) fn set(first: Option<&str>, last: Option<&str>, count: Option<u32>) -> Element {
    let mut set = Element::new("set", ns::RSM);
    let texts = [
        ("first", first.map(str::to_owned)),
        ("last", last.map(str::to_owned)),
        ("count", count.map(|c| c.to_string())),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            set.push(Element::new(name, ns::RSM).with_text(text));
        }
    }
    set
}

/// The number of a message.
pub(crate) fn number(text: &str) -> Result<ArchiveId, StanzaError> {
    let error = || {
        StanzaError::new(Condition::ItemNotFound)
            .with_text("a message that the query names is not in the archive")
    };
    text.parse().map(ArchiveId).map_err(|_| error())
}

fn bad_request(text: &'static str) -> StanzaError {
    StanzaError::new(Condition::BadRequest).with_text(text)
}
