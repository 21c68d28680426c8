//! Lists page by page (XEP-0059).

use crate::error::StanzaError;
use crate::model::ItemsFrom;
use carillon_wire::ns;
use carillon_wire::stanza::Condition;
use carillon_wire::xml::Element;

/// The part of a list that a client asks for.
#[derive(Debug)]
pub(super) struct Page {
    asked: bool,
    max: Option<u16>,
    after: Option<Box<str>>,
    /// Empty for the end of the list.
    before: Option<Box<str>>,
}

impl Page {
    /// Reads the `<set/>` in `parent`; without one, the list is read from its beginning.
    pub(super) fn of(parent: &Element) -> Result<Page, StanzaError> {
        let Some(set) = parent.child("set", ns::RSM) else {
            return Ok(Page { asked: false, max: None, after: None, before: None });
        };
        let text = |name| set.child(name, ns::RSM).map(|child| child.text().trim().to_owned());
        if set.child("index", ns::RSM).is_some() {
            // XEP-0059 §2.6
            let text = "pages are found by the item before or behind them";
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
    pub(super) fn is_asked(&self) -> bool {
        self.asked
    }

    /// The size of the page, at most `most`.
    pub(super) fn max(&self, most: u16) -> u16 {
        self.max.map_or(most, |max| max.min(most))
    }

    /// Where a page of items begins, or ends.
    pub(super) fn from(&self) -> ItemsFrom {
        match (&self.after, &self.before) {
            (Some(after), _) => ItemsFrom::After(after.clone()),
            (None, Some(before)) if before.is_empty() => ItemsFrom::Oldest,
            (None, Some(before)) => ItemsFrom::Before(before.clone()),
            (None, None) => ItemsFrom::Newest,
        }
    }

    /// The entry after which a page begins, for a list that can only be read forward.
    pub(super) fn after(&self) -> Result<Option<Box<str>>, StanzaError> {
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

fn bad_request(text: &'static str) -> StanzaError {
    StanzaError::new(Condition::BadRequest).with_text(text)
}
