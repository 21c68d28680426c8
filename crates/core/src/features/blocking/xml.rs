//! `<blocklist/>`, `<block/>` and `<unblock/>` (XEP-0191 §3).

use crate::error::StanzaError;
use crate::model::BlockListEdit;
use carillon_wire::jid::Jid;
use carillon_wire::ns;
use carillon_wire::stanza::Condition;
use carillon_wire::xml::Element;

/// A list of addresses under this name.
pub(super) fn list<'a>(name: &str, jids: impl Iterator<Item = &'a Jid>) -> Element {
    jids.fold(Element::new(name, ns::BLOCKING), |list, jid| {
        list.with_child(Element::new("item", ns::BLOCKING).with_attr("jid", jid.as_str()))
    })
}

/// What a client wants changed.
pub(super) fn edit(element: &Element) -> Result<BlockListEdit, StanzaError> {
    let bad = |text| StanzaError::new(Condition::BadRequest).with_text(text);
    let mut jids = Vec::new();
    for item in element.children().filter(|child| child.is("item", ns::BLOCKING)) {
        let jid = item.attr("jid").ok_or_else(|| bad("an item without 'jid'"))?;
        jids.push(Jid::new(jid).map_err(|_| StanzaError::new(Condition::JidMalformed))?);
    }
    match (element.name(), jids.is_empty()) {
        ("block", true) => Err(bad("nobody is named who is to be blocked")),
        ("block", false) => Ok(BlockListEdit::Block(jids)),
        (_, true) => Ok(BlockListEdit::UnblockAll),
        (_, false) => Ok(BlockListEdit::Unblock(jids)),
    }
}
