//! Lists of those who are in a room, and of those who are something to it, page by page (XEP-0045 §8.4, §9, XEP-0059).

use super::home::Home;
use super::occupants::Occupant;
use super::xml::request::AdminItem;
use super::xml::user::{affiliation, affiliation_word, role, role_word};
use crate::error::StanzaError;
use crate::model::{RoomAffiliation, RoomMember, RoomRecord, RoomRole as Role};
use crate::session::rsm::{self, Page};
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, Stanza};
use carillon_wire::xml::Element;

/// Entries of a page.
const PAGE: u16 = 500;

impl Home {
    /// The occupants of a role, or the accounts of an affiliation.
    pub(super) fn list(
        &self,
        record: &RoomRecord,
        stanza: &Stanza,
        query: &Element,
        items: &[AdminItem],
    ) -> Result<Element, StanzaError> {
        let [item] = items else { return Err(StanzaError::new(Condition::BadRequest)) };
        let page = Page::of(query)?;
        match &item.role {
            Some(wanted) => {
                let wanted = role(wanted).ok_or(StanzaError::new(Condition::BadRequest))?;
                self.may_list_role(record, stanza)?;
                self.list_role(wanted, &page)
            }
            None => {
                let wanted = item.affiliation.as_deref().and_then(affiliation);
                let wanted = wanted.ok_or(StanzaError::new(Condition::BadRequest))?;
                self.may_list_affiliation(record, stanza, wanted)?;
                self.list_affiliation(record, wanted, &page)
            }
        }
    }

    fn may_list_role(&self, record: &RoomRecord, stanza: &Stanza) -> Result<(), StanzaError> {
        match self.standing(record, stanza) {
            (own, role) if own >= RoomAffiliation::Admin || role == Role::Moderator => Ok(()),
            _ => Err(StanzaError::new(Condition::Forbidden)),
        }
    }

    fn may_list_affiliation(
        &self,
        record: &RoomRecord,
        stanza: &Stanza,
        wanted: RoomAffiliation,
    ) -> Result<(), StanzaError> {
        let (own, own_role) = self.standing(record, stanza);
        // Who sees everybody's address, sees who is a member, too.
        let is_open = record.config.non_anonymous
            && own >= RoomAffiliation::Member
            && wanted >= RoomAffiliation::Member;
        let is_moderator = own_role == Role::Moderator && wanted == RoomAffiliation::Member;
        match own >= RoomAffiliation::Admin || is_open || is_moderator {
            true => Ok(()),
            false => Err(StanzaError::new(Condition::Forbidden)),
        }
    }

    /// By their nicks.
    fn list_role(&self, wanted: Role, page: &Page) -> Result<Element, StanzaError> {
        let (occupants, after) = (&self.state.occupants, page.after()?);
        let total = occupants.iter().filter(|of| of.role == wanted).count();
        let of_page = occupants.after(after.as_deref()).filter(|of| of.role == wanted);
        Ok(paged(page, total, ns::MUC_ADMIN, of_page.map(|of| (of.nick(), in_role(of)))))
    }

    /// By their addresses.
    fn list_affiliation(
        &self,
        record: &RoomRecord,
        wanted: RoomAffiliation,
        page: &Page,
    ) -> Result<Element, StanzaError> {
        let (members, after) = (&record.members, page.after()?);
        let total = members.iter().filter(|member| member.affiliation == wanted).count();
        let is_before =
            |member: &RoomMember| after.as_ref().is_some_and(|after| *member.jid.as_str() <= **after);
        let rest = members.iter().skip(members.partition_point(is_before));
        let of_page = rest.filter(|member| member.affiliation == wanted);
        let listed = of_page.map(|member| (member.jid.as_str(), self.of_affiliation(member)));
        Ok(paged(page, total, ns::MUC_ADMIN, listed))
    }

    fn of_affiliation(&self, member: &RoomMember) -> Element {
        let mut item = Element::new("item", ns::MUC_ADMIN)
            .with_attr("affiliation", affiliation_word(member.affiliation))
            .with_attr("jid", member.jid.as_str());
        let occupant = self.state.occupants.of_account(member.jid.as_str()).next();
        let nick = occupant.map(Occupant::nick).or(Some(&*member.nick));
        if let Some(nick) = nick.filter(|nick| !nick.is_empty()) {
            item.set_attr("nick", nick);
        }
        if !member.reason.is_empty() {
            item.push(Element::new("reason", ns::MUC_ADMIN).with_text(&*member.reason));
        }
        item
    }

    /// The disco#items of the room: its occupants, for one of them.
    pub(super) fn list_occupants(&self, query: &Element, stanza: &Stanza) -> Result<Element, StanzaError> {
        let page = Page::of(query)?;
        let is_in = stanza.from.as_ref().is_some_and(|client| self.state.occupants.of(client).is_some());
        if !is_in {
            return Ok(Element::new("query", ns::DISCO_ITEMS));
        }
        let (occupants, after) = (&self.state.occupants, page.after()?);
        let item = |of: &Occupant| {
            Element::new("item", ns::DISCO_ITEMS)
                .with_attr("jid", of.address.as_str())
                .with_attr("name", of.nick())
        };
        let of_page = occupants.after(after.as_deref()).map(|of| (of.nick(), item(of)));
        Ok(paged(&page, occupants.len(), ns::DISCO_ITEMS, of_page))
    }
}

fn in_role(occupant: &Occupant) -> Element {
    let mut item = Element::new("item", ns::MUC_ADMIN)
        .with_attr("affiliation", affiliation_word(occupant.affiliation))
        .with_attr("nick", occupant.nick())
        .with_attr("role", role_word(occupant.role));
    if let Some(client) = occupant.clients.first() {
        item.set_attr("jid", client.jid.as_str());
    }
    item
}

/// A page of entries, each with its name in the list. A client that does not page is told that there are more.
fn paged<'a>(
    page: &Page,
    total: usize,
    ns: &'static str,
    entries: impl Iterator<Item = (&'a str, Element)>,
) -> Element {
    let (mut query, mut first, mut last, mut given) = (Element::new("query", ns), None, None, 0);
    for (name, entry) in entries.take(usize::from(page.max(PAGE, PAGE))) {
        first.get_or_insert(name);
        last = Some(name);
        given += 1;
        query.push(entry);
    }
    if page.is_asked() || given < total {
        query.push(rsm::set(first, last, u32::try_from(total).ok()));
    }
    query
}
