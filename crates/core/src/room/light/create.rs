//! Creating a room of MUC Light (§5.1), and asking whether accounts let themselves be added.

use super::affiliations::{check_accounts, check_size};
use super::{configuration, xml};
use crate::command::RoomRefusal;
use crate::error::StanzaError;
use crate::model::{RoomAffiliation, RoomConfig, RoomKey, RoomMember, RoomRecord};
use crate::ports::store::rooms::{CreateRoom, RoomRefusers};
use crate::ports::{Answer, Fault, Question};
use crate::room::asker::{Asker, refuse, reply};
use crate::room::home::Home;
use crate::room::owner::may_create;
use crate::room::step::{Adding, Change, Creator, NewRoom, Step};
use crate::session::Cx;
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, Stanza};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Home {
    /// A client creates the room.
    pub(super) fn light_create(&mut self, stanza: &Stanza, key: &RoomKey, cx: &mut Cx<'_>) {
        if let Err(refusal) = may_create(key, cx) {
            return refuse(stanza, &refusal.into(), cx);
        }
        let new = match new_room(stanza, self.state.address.domain(), cx) {
            Ok(new) => new,
            Err(error) => return refuse(stanza, &error, cx),
        };
        // The creator is among them: it may be in too many rooms.
        let accounts = new.others.iter().map(|(jid, _)| jid).chain([&new.creator]).cloned().collect();
        let question = RoomRefusers {
            domain: key.domain,
            kind: key.kind,
            room: self.state.address.clone(),
            by: new.creator.clone(),
            accounts,
            rooms_max: cx.shard.settings.muclight.rooms_per_user,
        };
        self.hold();
        self.ask(key, question, Step::Adding(Box::new(Adding::ToNewRoom(new))), cx);
    }

    /// The store said who is not to be added. From a room of MUC Light it is left out without a word (§4.5).
    pub(in crate::room) fn asked_whom(
        &mut self,
        adding: Adding,
        answer: Result<BTreeSet<BareJid>, Fault>,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) {
        match (adding, answer) {
            (Adding::ToRoom { record, mut wanted, asker }, Ok(refusers)) => {
                self.open(record.clone());
                wanted.retain(|(jid, _)| !refusers.contains(jid));
                self.light_change(&record, wanted, asker, key, cx);
            }
            (Adding::AsMembers { record, changes, by, asker }, Ok(refusers)) => {
                self.open(record.clone());
                match refusers.first() {
                    Some(full) => refuse_member(full, asker, cx),
                    None => self.change(&record, Change::Members { changes, by }, asker, key, cx),
                }
            }
            (Adding::ToRoom { record, asker, .. } | Adding::AsMembers { record, asker, .. }, Err(fault)) => {
                self.open(record);
                asker.refused(fault.into(), cx);
            }
            (Adding::ToNewRoom(new), Ok(refusers)) => self.create_with(new, &refusers, key, cx),
            (Adding::ToNewRoom(new), Err(fault)) => {
                self.vanish();
                Asker::client(new.stanza).refused(fault.into(), cx);
            }
        }
    }

    fn create_with(
        &mut self,
        mut new: NewRoom,
        refusers: &BTreeSet<BareJid>,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) {
        if refusers.contains(&new.creator) {
            self.vanish();
            return Asker::client(new.stanza).refused(RoomRefusal::TooManyRooms, cx);
        }
        let policy = match may_create(key, cx) {
            Ok(policy) => policy,
            Err(refusal) => {
                self.vanish();
                return Asker::client(new.stanza).refused(refusal, cx);
            }
        };
        new.others.retain(|(jid, _)| !refusers.contains(jid));
        let has_owner = new.others.iter().any(|(_, is)| *is == RoomAffiliation::Owner);
        let own = if has_owner { RoomAffiliation::Member } else { RoomAffiliation::Owner };
        let all = new.others.iter().cloned().chain([(new.creator.clone(), own)]);
        let members: Vec<RoomMember> = all.map(|(jid, is)| RoomMember::new(jid, is)).collect();
        let question = CreateRoom {
            domain: key.domain,
            kind: key.kind,
            name: (*key.name).into(),
            config: new.config.clone(),
            owned_max: policy.rooms_owned(),
            rooms_max: policy.rooms(),
            now: cx.now.unix,
            facts: self.state.facts_of_creation(key.domain, Some(&new.creator), &members, cx),
            members,
        };
        self.ask(key, question, Step::Create(Creator::Light(new)), cx);
    }

    /// The room was created: its occupants are told.
    pub(in crate::room) fn light_created(
        &mut self,
        record: &Arc<RoomRecord>,
        new: &NewRoom,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) {
        let id = new.stanza.id.clone();
        self.tell_members(None, record, &record.members, id, key, cx);
        reply(new.stanza.result_reply(), cx);
    }

    /// The answer of the store, with its type.
    pub(in crate::room) fn refusers(answer: Answer) -> Result<BTreeSet<BareJid>, Fault> {
        RoomRefusers::answer(answer).map(BTreeSet::from_iter)
    }
}

/// Somebody is a member of as many rooms as it may be.
fn refuse_member(full: &BareJid, asker: Asker, cx: &mut Cx<'_>) {
    let text = format!("{full} is a member of as many rooms as it may be");
    let error = StanzaError::new(Condition::ResourceConstraint).with_text(text);
    asker.refused_by(&error, RoomRefusal::TooManyRooms, cx);
}

/// What a client wants to create.
fn new_room(stanza: &Stanza, host: &str, cx: &Cx<'_>) -> Result<NewRoom, StanzaError> {
    let bad_request = || StanzaError::new(Condition::BadRequest);
    let creator = stanza.from.as_ref().map(Jid::bare).ok_or_else(bad_request)?;
    let query = stanza.payload.find("query", ns::MUCLIGHT_CREATE).ok_or_else(bad_request)?.element();
    let fields = &cx.shard.settings.muclight.fields;
    let config = match query.child("configuration", ns::MUCLIGHT_CREATE) {
        Some(configuration) => configuration::configured(&RoomConfig::light(), configuration, fields)?,
        None => RoomConfig::light(),
    };
    let others = match query.child("occupants", ns::MUCLIGHT_CREATE) {
        Some(occupants) => xml::users(occupants)?,
        None => Vec::new(),
    };
    check_accounts(&others, host)?;
    check_size(others.len() + 1, cx)?;
    let owners = others.iter().filter(|(_, is)| *is == RoomAffiliation::Owner).count();
    if owners > 1 || others.iter().any(|(jid, is)| *jid == creator || *is == RoomAffiliation::None) {
        return Err(bad_request());
    }
    Ok(NewRoom { stanza: Box::new(stanza.clone()), creator, config, others })
}
