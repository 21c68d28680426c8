//! Who is an occupant of a room of MUC Light (§4.4, §5.4).

use super::xml::{self, USERS_MAX};
use crate::command::RoomRefusal;
use crate::error::StanzaError;
use crate::model::{RoomAffiliation, RoomKey, RoomMember, RoomRecord};
use crate::ports::store::rooms::RoomRefusers;
use crate::room::asker::Asker;
use crate::room::home::Home;
use crate::room::step::{Adding, Change, Step};
use crate::session::Cx;
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::stanza::{Condition, Stanza};
use carillon_wire::xml::Element;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Home {
    /// A client changes who is an occupant.
    pub(super) fn light_affiliations(
        &mut self,
        record: &Arc<RoomRecord>,
        query: &Element,
        stanza: Box<Stanza>,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) -> Result<(), StanzaError> {
        let Some(by) = stanza.from.as_ref().map(Jid::bare) else { return Ok(()) };
        let wanted = xml::users(query)?;
        if wanted.is_empty() {
            return Err(StanzaError::new(Condition::BadRequest).with_text("no user is named"));
        }
        check_accounts(&wanted, self.state.address.domain())?;
        may_change(record, &by, &wanted, cx.shard.settings.muclight.all_can_invite)?;
        let is_new = |(jid, _): &&(BareJid, RoomAffiliation)| !is_occupant(record, jid);
        let new: Vec<BareJid> = wanted.iter().filter(is_new).map(|(jid, _)| jid.clone()).collect();
        check_size(record.members.len() + new.len(), cx)?;
        let asker = Asker::client(stanza);
        if new.is_empty() {
            self.light_change(record, wanted, asker, key, cx);
            return Ok(());
        }
        let question = RoomRefusers {
            domain: key.domain,
            kind: key.kind,
            room: self.state.address.clone(),
            by,
            accounts: new,
            rooms_max: cx.shard.settings.muclight.rooms_per_user,
        };
        self.hold();
        let adding = Adding::ToRoom { record: record.clone(), wanted, asker };
        self.ask(key, question, Step::Adding(Box::new(adding)), cx);
        Ok(())
    }

    /// Changes what accounts are to the room, and who owns it with that.
    pub(super) fn light_change(
        &mut self,
        record: &Arc<RoomRecord>,
        wanted: Vec<(BareJid, RoomAffiliation)>,
        asker: Asker,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) {
        let changes = with_owner(record, wanted);
        if changes.is_empty() {
            return asker.done(crate::command::RoomOutcome::Done, cx);
        }
        self.change(record, Change::Members { changes, by: None }, asker, key, cx);
    }

    /// A provider changes what accounts are to the room: it may do what no client may.
    pub(in crate::room) fn light_members(
        &mut self,
        record: &Arc<RoomRecord>,
        changes: &[crate::command::RoomMemberChange],
        asker: Asker,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) {
        // Of several about one account the last counts.
        let mut wanted = BTreeMap::new();
        for change in changes {
            let affiliation = change.affiliation.unwrap_or(record.affiliation(change.jid.as_str()));
            let is_here = change.jid.local().is_some() && is_of(&change.jid, self.state.address.domain());
            let is_known = matches!(
                affiliation,
                RoomAffiliation::Owner | RoomAffiliation::Member | RoomAffiliation::None
            );
            if !is_here || !is_known {
                return asker.refused(RoomRefusal::Unsuited, cx);
            }
            wanted.insert(change.jid.clone(), affiliation);
        }
        let owners = wanted.values().filter(|affiliation| **affiliation == RoomAffiliation::Owner).count();
        if owners > 1 {
            return asker.refused(RoomRefusal::Unsuited, cx);
        }
        let is_new = |(jid, is): &(&BareJid, &RoomAffiliation)| {
            !is_occupant(record, jid) && **is != RoomAffiliation::None
        };
        if record.members.len() + wanted.iter().filter(is_new).count() > most(cx) {
            return asker.refused(RoomRefusal::TooManyMembers, cx);
        }
        let is_change = |(jid, is): &(BareJid, RoomAffiliation)| record.affiliation(jid.as_str()) != *is;
        let wanted = wanted.into_iter().filter(is_change).collect();
        self.light_change(record, wanted, asker, key, cx);
    }
}

/// Whether a client owns the room.
pub(super) fn is_owner(record: &RoomRecord, client: Option<&Jid>) -> bool {
    client.is_some_and(|client| record.affiliation(client.bare_str()) == RoomAffiliation::Owner)
}

fn is_occupant(record: &RoomRecord, jid: &BareJid) -> bool {
    record.member(jid.as_str()).is_some_and(RoomMember::is_member)
}

/// Whether an account is of the domain that has this host for its rooms.
fn is_of(account: &BareJid, host: &str) -> bool {
    host.split_once('.').is_some_and(|(_, domain)| account.domain() == domain)
}

/// All of them are accounts of the room's domain.
pub(super) fn check_accounts(wanted: &[(BareJid, RoomAffiliation)], host: &str) -> Result<(), StanzaError> {
    let is_account = |(jid, _): &(BareJid, RoomAffiliation)| jid.local().is_some() && is_of(jid, host);
    match wanted.iter().all(is_account) {
        true => Ok(()),
        false => {
            Err(StanzaError::new(Condition::BadRequest).with_text("an occupant is an account of this domain"))
        }
    }
}

/// The largest number of occupants of a room.
fn most(cx: &Cx<'_>) -> usize {
    cx.shard.settings.muclight.occupants as usize
}

/// Whether a room may have so many occupants.
pub(super) fn check_size(occupants: usize, cx: &Cx<'_>) -> Result<(), StanzaError> {
    if occupants <= most(cx) {
        return Ok(());
    }
    let text = format!("a room has at most {} occupants", most(cx));
    Err(StanzaError::new(Condition::ResourceConstraint).with_text(text))
}

/// Whether an occupant may change this (§5.4, §7.4).
fn may_change(
    record: &RoomRecord,
    by: &BareJid,
    wanted: &[(BareJid, RoomAffiliation)],
    all_can_invite: bool,
) -> Result<(), StanzaError> {
    debug_assert!(wanted.len() <= USERS_MAX, "so many are read");
    let own = record.affiliation(by.as_str());
    let has_owner = record.members.iter().any(|member| member.affiliation == RoomAffiliation::Owner);
    let mut owners = 0;
    for (jid, affiliation) in wanted {
        let has = record.affiliation(jid.as_str());
        let leaves = jid == by && *affiliation == RoomAffiliation::None;
        let invites = *affiliation == RoomAffiliation::Member && !is_occupant(record, jid);
        let is_allowed = own == RoomAffiliation::Owner || leaves || (invites && all_can_invite);
        if !is_allowed {
            return Err(StanzaError::new(Condition::NotAllowed));
        }
        if has == *affiliation {
            return Err(StanzaError::new(Condition::BadRequest).with_text("the request changes nothing"));
        }
        owners += u32::from(*affiliation == RoomAffiliation::Owner);
    }
    if owners > 1 || (owners == 1 && !has_owner) {
        return Err(StanzaError::new(Condition::BadRequest).with_text("a room has one owner"));
    }
    Ok(())
}

/// The changes, and what follows for the owner: whoever owned the room does not when another does, and where nobody would, whoever has been an
/// occupant for the longest time does. A room that has no owner gets none by that.
fn with_owner(record: &RoomRecord, wanted: Vec<(BareJid, RoomAffiliation)>) -> Vec<RoomMember> {
    let mut changes: Vec<RoomMember> =
        wanted.into_iter().map(|(jid, affiliation)| RoomMember::new(jid, affiliation)).collect();
    let is_owner = |member: &&RoomMember| member.affiliation == RoomAffiliation::Owner;
    let Some(owner) = record.members.iter().find(is_owner) else { return changes };
    let is_named = |changes: &[RoomMember], jid: &BareJid| changes.iter().any(|change| change.jid == *jid);
    if changes.iter().any(|change| is_owner(&change)) {
        if !is_named(&changes, &owner.jid) {
            changes.insert(0, RoomMember::new(owner.jid.clone(), RoomAffiliation::Member));
        }
        return changes;
    }
    if !is_named(&changes, &owner.jid) {
        return changes;
    }
    let named: std::collections::BTreeSet<&str> = changes.iter().map(|change| change.jid.as_str()).collect();
    let others =
        record.members.iter().filter(|member| member.is_member() && !named.contains(member.jid.as_str()));
    if let Some(next) = others.min_by_key(|member| (member.since, member.jid.as_str())) {
        changes.insert(0, RoomMember::new(next.jid.clone(), RoomAffiliation::Owner));
        return changes;
    }
    let next = changes.iter_mut().find(|change| change.is_member() && change.jid != owner.jid);
    match next {
        Some(next) => next.affiliation = RoomAffiliation::Owner,
        // Nobody else is there: it stays the owner.
        None => changes.retain(|change| change.jid != owner.jid || !change.is_member()),
    }
    changes
}
