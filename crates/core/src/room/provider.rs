//! What a provider does with a room, which it may do whatever its affiliation would be.

use super::asker::Asker;
use super::home::Home;
use super::light;
use super::occupants::{Occupant, OccupantId};
use super::speak::{clean, subject};
use super::step::{Change, Creator, Moderating, Step};
use super::xml::request;
use super::xml::user::{self, KICKED, Said};
use crate::command::{
    ReplyTo, RoomMemberChange, RoomOccupant, RoomOutcome, RoomRefusal, RoomRequest, RoomSpeaker,
};
use crate::model::{
    RoomAffiliation, RoomConfig, RoomKey, RoomKind, RoomMember, RoomRecord, RoomRole as Role,
};
use crate::ports::store::rooms::CreateRoom;
use crate::session::Cx;
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::ns;
use carillon_wire::stanza::{MessageType, Payload, Stanza};
use std::sync::Arc;

impl Home {
    /// A command about a room that is there.
    pub(super) fn command(
        &mut self,
        record: &Arc<RoomRecord>,
        request: RoomRequest,
        reply: ReplyTo,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) {
        let asker = Asker::Command(reply);
        let refusal = match request {
            RoomRequest::Describe => return asker.done(self.outcome(record.clone()), cx),
            RoomRequest::Occupants { after, max } => {
                let occupants = self.occupants(after.as_deref(), max);
                return asker.done(RoomOutcome::Occupants(occupants), cx);
            }
            RoomRequest::Configure { after, .. } if !is_suited(&after, record.kind, cx) => {
                RoomRefusal::Unsuited
            }
            RoomRequest::Configure { before, after } if *before == record.config => {
                return self.change(record, Change::Configure(after), asker, key, cx);
            }
            RoomRequest::Destroy { reason, venue } => {
                let change = Change::Destroy { reason, venue, password: None };
                return self.change(record, change, asker, key, cx);
            }
            RoomRequest::SetMembers { changes } if record.kind == RoomKind::MucLight => {
                return self.light_members(record, &changes, asker, key, cx);
            }
            RoomRequest::SetMembers { changes } => return self.set_members(record, &changes, asker, key, cx),
            RoomRequest::SetRole { nick, role, reason } => {
                match self.set_role(record, &nick, role, reason.as_deref(), cx) {
                    Ok(()) => return asker.done(RoomOutcome::Done, cx),
                    Err(refusal) => refusal,
                }
            }
            RoomRequest::Say { id, speaker, payload } => match self.speaker(record, speaker.as_ref(), cx) {
                Ok(speaker) => return self.say_for(record, &speaker, id, payload, asker, key, cx),
                Err(refusal) => refusal,
            },
            RoomRequest::Moderate { id, reason } => {
                let of = Moderating { record: record.clone(), id, reason, by: None, asker };
                return self.find(of, key, cx);
            }
            RoomRequest::EraseArchive => {
                return self.change(record, Change::EraseArchive, asker, key, cx);
            }
            RoomRequest::SetAvatar { .. } if record.kind == RoomKind::MucLight => RoomRefusal::Unsuited,
            RoomRequest::SetAvatar { photo } => return self.set_avatar(record, photo, asker, key, cx),
            RoomRequest::Configure { .. } => RoomRefusal::Changed,
            RoomRequest::Create { .. } => RoomRefusal::Exists,
        };
        asker.refused(refusal, cx);
    }

    /// A command about a room that is not there.
    pub(super) fn command_to_nothing(
        &mut self,
        request: RoomRequest,
        reply: ReplyTo,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) {
        let RoomRequest::Create { config } = request else {
            return Asker::Command(reply).refused(RoomRefusal::NotFound, cx);
        };
        if !is_suited(&config, key.kind, cx) {
            return Asker::Command(reply).refused(RoomRefusal::Unsuited, cx);
        }
        let policy = cx.shard.domains.numbered(key.domain).map(|domain| domain.policy);
        let question = CreateRoom {
            domain: key.domain,
            kind: key.kind,
            name: (*key.name).into(),
            config: *config,
            members: Vec::new(),
            owned_max: u32::MAX,
            rooms_max: policy.unwrap_or_default().rooms(),
            now: cx.now.unix,
            facts: self.state.facts_of_creation(key.domain, None, &[], cx),
        };
        self.hold();
        self.ask(key, question, Step::Create(Creator::Command(reply)), cx);
    }

    /// The room as the answer to a command describes it.
    pub(super) fn outcome(&self, record: Arc<RoomRecord>) -> RoomOutcome {
        let occupants = u32::try_from(self.state.occupants.len()).unwrap_or(u32::MAX);
        RoomOutcome::Record { record, occupants }
    }

    fn occupants(&self, after: Option<&str>, max: u16) -> Vec<RoomOccupant> {
        let occupant = |of: &Occupant| RoomOccupant {
            nick: of.nick().into(),
            affiliation: of.affiliation,
            role: of.role,
            clients: of.clients.iter().map(|client| client.jid.clone()).collect(),
        };
        self.state.occupants.after(after).take(usize::from(max)).map(occupant).collect()
    }

    fn set_members(
        &mut self,
        record: &Arc<RoomRecord>,
        changes: &[RoomMemberChange],
        asker: Asker,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) {
        let changes: Vec<RoomMember> = changes.iter().map(|change| changed(record, change)).collect();
        let after = RoomRecord { members: record.members_after(&changes), ..(**record).clone() };
        if after.members.len() > cx.shard.settings.limits.room_members as usize {
            return asker.refused(RoomRefusal::TooManyMembers, cx);
        }
        let mut nicks: Vec<&str> =
            after.members.iter().map(|of| &*of.nick).filter(|nick| !nick.is_empty()).collect();
        nicks.sort_unstable();
        if nicks.windows(2).any(|pair| matches!(pair, [a, b] if a == b)) {
            return asker.refused(RoomRefusal::NickTaken, cx);
        }
        self.change_members(record, changes, None, asker, key, cx);
    }

    fn set_role(
        &mut self,
        record: &RoomRecord,
        nick: &str,
        role: Role,
        reason: Option<&str>,
        cx: &mut Cx<'_>,
    ) -> Result<(), RoomRefusal> {
        let occupant = self.state.occupants.named(nick).ok_or(RoomRefusal::NoOccupant)?;
        let affiliation = occupant.affiliation;
        let said = Said { reason, ..Said::default() };
        if role == Role::None {
            self.state.expel(record, nick, &Said { codes: &[KICKED], ..said }, cx);
        } else {
            self.state.occupants.set(nick, affiliation, role);
            self.state.tell_changed(record, nick, &said, cx);
        }
        Ok(())
    }

    /// Who is to have said what a provider says.
    fn speaker(
        &self,
        record: &RoomRecord,
        speaker: Option<&RoomSpeaker>,
        cx: &Cx<'_>,
    ) -> Result<Speaker, RoomRefusal> {
        let room = &self.state.address;
        let Some(RoomSpeaker { account, nick }) = speaker else {
            return Ok(Speaker { account: room.clone(), address: room.to_jid(), id: None });
        };
        if record.kind == RoomKind::MucLight {
            let address = room.with_resource(account.as_str()).map_err(|_| RoomRefusal::NoNick)?;
            return Ok(Speaker { account: account.clone(), address, id: None });
        }
        let reserved = record.member(account.as_str()).map(|member| &*member.nick);
        let nick = nick.as_deref().or(reserved.filter(|nick| !nick.is_empty()));
        let nick = nick.or(account.local()).unwrap_or_default();
        let address = room.with_resource(nick).map_err(|_| RoomRefusal::NoNick)?;
        if !self.state.is_free(record, address.resource().unwrap_or_default(), account.as_str()) {
            return Err(RoomRefusal::NickTaken);
        }
        let id = Some(self.state.occupant_id(account.as_str(), cx));
        Ok(Speaker { account: account.clone(), address, id })
    }

    #[expect(clippy::too_many_arguments, reason = "all of it belongs to what is said")]
    fn say_for(
        &mut self,
        record: &Arc<RoomRecord>,
        speaker: &Speaker,
        id: Option<Box<str>>,
        payload: Payload,
        asker: Asker,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) {
        let mut said = Stanza::message(MessageType::Groupchat);
        (said.from, said.id, said.payload) = (Some(speaker.address.clone()), id, payload);
        clean(&mut said);
        if let Some(id) = speaker.id {
            said.payload.push_element(&user::occupant_id(id));
        }
        if !request::is_subject(&said.payload) {
            return self.keep(record, said, speaker.account.clone(), asker, key, cx);
        }
        if record.kind == RoomKind::MucLight {
            let subject = said.payload.find("subject", ns::CLIENT).map(|subject| subject.element().text());
            return self.light_subject(record, &subject.unwrap_or_default(), asker, key, cx);
        }
        let subject = subject(&said, &speaker.account, cx);
        self.change(record, Change::Subject(subject, Box::new(said)), asker, key, cx);
    }
}

/// Whether a room of this kind can be configured like this.
fn is_suited(config: &RoomConfig, kind: RoomKind, cx: &Cx<'_>) -> bool {
    let fields = &cx.shard.settings.muclight.fields;
    config.suits(kind) && config.fields.keys().all(|name| light::is_field(name, fields))
}

/// In whose name something is said.
struct Speaker {
    account: BareJid,
    address: Jid,
    /// The id of the account in the room; none for the room itself.
    id: Option<OccupantId>,
}

/// What a room has of an account after a change.
fn changed(record: &RoomRecord, change: &RoomMemberChange) -> RoomMember {
    let before = record.member(change.jid.as_str());
    let affiliation = before.map_or(RoomAffiliation::None, |member| member.affiliation);
    let affiliation = change.affiliation.unwrap_or(affiliation);
    let keep = |new: &Option<Box<str>>, old: fn(&RoomMember) -> &Box<str>| {
        new.clone().or(before.map(|member| old(member).clone())).unwrap_or_default()
    };
    let nick = match affiliation {
        // Whoever may not enter has no nick.
        RoomAffiliation::Outcast => "".into(),
        _ => keep(&change.nick, |member| &member.nick),
    };
    let reason = keep(&change.reason, |member| &member.reason);
    RoomMember { nick, reason, ..RoomMember::new(change.jid.clone(), affiliation) }
}
