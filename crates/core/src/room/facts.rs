//! What others are told of rooms: facts, which the store keeps as events in the commit of what they tell.
//!
//! Which a domain has, its policy says ([`RoomEvents`]). Of others nothing is made.

use super::home::RoomState;
use super::step::Change;
use crate::Effect;
use crate::model::{
    DomainId, Event, RoomAction, RoomAffiliation, RoomEvents, RoomFact, RoomKind, RoomMember, RoomMemberFact,
    RoomRecord,
};
use crate::session::Cx;
use carillon_wire::jid::BareJid;
use carillon_wire::ns;
use std::collections::BTreeMap;

/// The field of a room of MUC Light that is its subject.
const LIGHT_SUBJECT: &str = "subject";

/// Facts may have been stored: those who follow events look for them, and features are told which they are.
pub(super) fn stored(domain: DomainId, cx: &mut Cx<'_>, facts: impl FnOnce(&Cx<'_>) -> Vec<RoomFact>) {
    if policy(domain, cx) == RoomEvents::Off {
        return;
    }
    if cx.out.events_watched {
        cx.out.push(Effect::EventStored);
    }
    if cx.pipeline.event.is_empty() {
        return;
    }
    for fact in facts(cx) {
        let event = Event::Room(Box::new(fact), None);
        for hook in &cx.pipeline.event {
            hook(&event, cx);
        }
    }
}

fn policy(domain: DomainId, cx: &Cx<'_>) -> RoomEvents {
    cx.shard.domains.numbered(domain).map_or(RoomEvents::Off, |domain| domain.policy.room_events)
}

impl RoomState {
    /// That something was done, where the domain tells it.
    pub(super) fn fact(
        &self,
        domain: DomainId,
        by: Option<&BareJid>,
        action: impl FnOnce() -> RoomAction,
        cx: &Cx<'_>,
    ) -> Option<RoomFact> {
        let policy = policy(domain, cx);
        if policy == RoomEvents::Off {
            return None;
        }
        let action = action();
        let (room, at) = (self.address.clone(), cx.now.unix);
        policy.tells(&action).then(|| RoomFact { domain, room, at, by: by.cloned(), action })
    }

    /// That the room was created, with these members.
    pub(super) fn facts_of_creation(
        &self,
        domain: DomainId,
        by: Option<&BareJid>,
        members: &[RoomMember],
        cx: &Cx<'_>,
    ) -> Vec<RoomFact> {
        let Some(created) = self.fact(domain, by, || RoomAction::Created, cx) else { return Vec::new() };
        let listed = members.iter().map(|member| RoomMemberFact {
            account: member.jid.clone(),
            was: RoomAffiliation::None,
            is: member.affiliation,
        });
        let listed: Vec<RoomMemberFact> = listed.collect();
        let mut facts = vec![created];
        facts.extend(self.facts_of_members(domain, by, &listed, cx));
        facts
    }

    /// What a change of the room does.
    pub(super) fn facts_of(
        &self,
        change: &Change,
        record: &RoomRecord,
        by: Option<&BareJid>,
        cx: &Cx<'_>,
    ) -> Vec<RoomFact> {
        let domain = record.domain;
        if policy(domain, cx) == RoomEvents::Off {
            return Vec::new();
        }
        let action = match change {
            Change::Members { changes, .. } => {
                return self.facts_of_members(domain, by, &changed(record, changes), cx);
            }
            Change::Subject(_, said) => {
                let text = said.payload.find("subject", ns::CLIENT).map(|of| of.element().text());
                RoomAction::Subject(text.filter(|text| !text.is_empty()).map(Into::into))
            }
            Change::Configure(config) if record.kind == RoomKind::MucLight => {
                let (was, is) = (record.config.fields.get(LIGHT_SUBJECT), config.fields.get(LIGHT_SUBJECT));
                if was == is {
                    return Vec::new();
                }
                RoomAction::Subject(is.map(|text| text.as_str().into()))
            }
            Change::Destroy { reason, .. } => RoomAction::Destroyed(reason.as_deref().map(Into::into)),
            Change::Moderate { id, .. } => RoomAction::Moderated(*id),
            Change::Configure(_) | Change::Vcard { .. } | Change::EraseArchive => return Vec::new(),
        };
        self.fact(domain, by, || action, cx).into_iter().collect()
    }

    fn facts_of_members(
        &self,
        domain: DomainId,
        by: Option<&BareJid>,
        changes: &[RoomMemberFact],
        cx: &Cx<'_>,
    ) -> Vec<RoomFact> {
        let parts = changes.chunks(RoomAction::MEMBERS_MAX);
        parts.filter_map(|part| self.fact(domain, by, || RoomAction::Members(part.to_vec()), cx)).collect()
    }
}

/// The accounts that become something else: of several changes of one the last counts.
fn changed(record: &RoomRecord, changes: &[RoomMember]) -> Vec<RoomMemberFact> {
    let last: BTreeMap<&str, &RoomMember> =
        changes.iter().map(|change| (change.jid.as_str(), change)).collect();
    let facts = last.into_values().map(|change| RoomMemberFact {
        account: change.jid.clone(),
        was: record.affiliation(change.jid.as_str()),
        is: change.affiliation,
    });
    facts.filter(|fact| fact.was != fact.is).collect()
}
