//! What moderators, admins and owners do (XEP-0045 §8, §9, §10; XEP-0425).

use super::asker::{Asker, refuse, reply};
use super::enter::{LOGGED, role_of};
use super::home::{Home, RoomState};
use super::speak::of_room;
use super::step::{Adding, Change, Step};
use super::xml::request::{AdminItem, admin_items};
use super::xml::user::{self, BANNED, KICKED, MEMBERS_ONLY, NO_MEMBER, Said, affiliation, role};
use crate::error::StanzaError;
use crate::model::{Map, RoomAffiliation, RoomKey, RoomMember, RoomRecord, RoomRole as Role};
use crate::ports::store::rooms::RoomRefusers;
use crate::session::Cx;
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::stanza::{Condition, IqType, Kind, MessageType, Stanza};
use carillon_wire::xml::Element;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) const CONFIG_CHANGED: u16 = 104;
const NOT_LOGGED: u16 = 171;
const NON_ANONYMOUS_NOW: u16 = 172;
const SEMI_ANONYMOUS_NOW: u16 = 173;

/// Changes of affiliations at once of which those are told who are not in the room.
const TOLD_MAX: usize = 200;

impl Home {
    /// A request of muc#admin.
    pub(super) fn admin(
        &mut self,
        record: &Arc<RoomRecord>,
        query: &Element,
        stanza: &Stanza,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) {
        let result = admin_items(query).and_then(|items| match stanza.kind {
            Kind::Iq(IqType::Get) => {
                let answer = self.list(record, stanza, query, &items)?;
                let answer = stanza.result_reply().with_payload(answer);
                reply(answer, cx);
                Ok(())
            }
            _ if items.iter().all(|item| item.role.is_some()) => self.set_roles(record, stanza, &items, cx),
            _ => self.set_affiliations(record, stanza, &items, key, cx),
        });
        if let Err(error) = result {
            refuse(stanza, &error, cx);
        }
    }

    /// What a client is to the room: its affiliation, and its role while it is in it.
    pub(super) fn standing(&self, record: &RoomRecord, stanza: &Stanza) -> (RoomAffiliation, Role) {
        let Some(client) = &stanza.from else { return Default::default() };
        let role = self.state.occupants.of(client).map_or(Role::None, |occupant| occupant.role);
        (record.affiliation(client.bare_str()), role)
    }

    /// Changes what occupants may do (XEP-0045 §8.2 to §8.4, §9.6, §9.7).
    fn set_roles(
        &mut self,
        record: &RoomRecord,
        stanza: &Stanza,
        items: &[AdminItem],
        cx: &mut Cx<'_>,
    ) -> Result<(), StanzaError> {
        let sender = self.sender(stanza).map_err(|_| StanzaError::new(Condition::Forbidden))?;
        let (own, own_role, actor) = (sender.affiliation, sender.role, sender.nick().to_owned());
        let mut changes = Vec::new();
        for item in items {
            let wanted =
                item.role.as_deref().and_then(role).ok_or(StanzaError::new(Condition::BadRequest))?;
            let nick = item.nick.clone().ok_or(StanzaError::new(Condition::BadRequest))?;
            let occupant =
                self.state.occupants.named(&nick).ok_or(StanzaError::new(Condition::ItemNotFound))?;
            let is_demotion = wanted < Role::Moderator && wanted != Role::None;
            // §8.2, §8.4, §9.7: nobody takes away what somebody has by an affiliation that is as high.
            if (wanted == Role::None && occupant.affiliation > own)
                || (is_demotion && occupant.affiliation >= RoomAffiliation::Admin)
            {
                return Err(StanzaError::new(Condition::NotAllowed));
            }
            let is_of_moderators =
                wanted == Role::Moderator || (is_demotion && occupant.role == Role::Moderator);
            if own_role < Role::Moderator || (is_of_moderators && own < RoomAffiliation::Admin) {
                return Err(StanzaError::new(Condition::Forbidden));
            }
            changes.push((nick, wanted, item.reason.clone()));
        }
        reply(stanza.result_reply(), cx);
        for (nick, wanted, reason) in changes {
            let codes = [KICKED];
            let codes = if wanted == Role::None { &codes[..] } else { &[] };
            let said = Said { codes, actor: Some(&actor), reason: reason.as_deref(), ..Said::default() };
            if wanted == Role::None {
                self.state.expel(record, &nick, &said, cx);
            } else if let Some(occupant) = self.state.occupants.named(&nick) {
                let affiliation = occupant.affiliation;
                self.state.occupants.set(&nick, affiliation, wanted);
                let said = Said { actor: None, ..said };
                self.state.tell_changed(record, &nick, &said, cx);
            }
        }
        Ok(())
    }

    /// Changes what accounts are to the room (XEP-0045 §9.1 to §9.5, §10.3 to §10.8).
    fn set_affiliations(
        &mut self,
        record: &Arc<RoomRecord>,
        stanza: &Stanza,
        items: &[AdminItem],
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) -> Result<(), StanzaError> {
        let (own, _) = self.standing(record, stanza);
        if own < RoomAffiliation::Admin {
            return Err(StanzaError::new(Condition::Forbidden));
        }
        let mut changes = Vec::new();
        for item in items {
            let wanted = item.affiliation.as_deref().and_then(affiliation);
            let wanted = wanted.ok_or(StanzaError::new(Condition::BadRequest))?;
            let jid = self.account_of(item)?;
            if jid.local().is_none() && wanted > RoomAffiliation::None {
                let text = "a domain can be banned, and nothing else";
                return Err(StanzaError::new(Condition::NotAcceptable).with_text(text));
            }
            let is_itself = stanza.from.as_ref().is_some_and(|from| from.bare_str() == jid.as_str());
            if is_itself && wanted == RoomAffiliation::Outcast {
                // §9.1
                return Err(StanzaError::new(Condition::Conflict));
            }
            let has = record.affiliation(jid.as_str());
            if own < RoomAffiliation::Owner
                && (has >= RoomAffiliation::Admin || wanted >= RoomAffiliation::Admin)
            {
                return Err(StanzaError::new(Condition::NotAllowed));
            }
            let nick = record.member(jid.as_str()).map(|member| member.nick.clone()).unwrap_or_default();
            let nick = if wanted == RoomAffiliation::Outcast { "".into() } else { nick };
            let reason: Box<str> = item.reason.clone().unwrap_or_default().into();
            changes.push(RoomMember { nick, reason, ..RoomMember::new(jid, wanted) });
        }
        let after = record.members_after(&changes);
        if !after.iter().any(|member| member.affiliation == RoomAffiliation::Owner) {
            let text = "a room has an owner";
            return Err(StanzaError::new(Condition::Conflict).with_text(text));
        }
        if after.len() > cx.shard.settings.limits.room_members as usize {
            return Err(StanzaError::new(Condition::ResourceConstraint)
                .with_text("the room has as many members as it may"));
        }
        let client = stanza.from.as_ref();
        let by = client.and_then(|client| self.state.occupants.of(client)).map(|of| of.nick().into());
        let asker = Asker::client(Box::new(stanza.clone()));
        self.change_members(record, changes, by, asker, key, cx);
        Ok(())
    }

    /// Changes what accounts are to a room that is not of MUC Light. The store is asked first whether those who become members may be members of one room
    /// more: of how many, others decide.
    pub(super) fn change_members(
        &mut self,
        record: &Arc<RoomRecord>,
        changes: Vec<RoomMember>,
        by: Option<Box<str>>,
        asker: Asker,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) {
        let is_new = |change: &&RoomMember| {
            change.is_member() && record.affiliation(change.jid.as_str()) < RoomAffiliation::Member
        };
        let accounts: Vec<BareJid> = changes.iter().filter(is_new).map(|change| change.jid.clone()).collect();
        if accounts.is_empty() {
            return self.change(record, Change::Members { changes, by }, asker, key, cx);
        }
        let question = RoomRefusers {
            domain: key.domain,
            kind: key.kind,
            room: self.state.address.clone(),
            by: asker.account().unwrap_or_else(|| self.state.address.clone()),
            accounts,
            rooms_max: cx.shard.settings.limits.rooms_joined,
        };
        self.hold();
        let adding = Adding::AsMembers { record: record.clone(), changes, by, asker };
        self.ask(key, question, Step::Adding(Box::new(adding)), cx);
    }

    /// The account that an entry is about.
    fn account_of(&self, item: &AdminItem) -> Result<BareJid, StanzaError> {
        match (&item.jid, &item.nick) {
            (Some(jid), _) => {
                let jid = Jid::new(jid).map_err(|_| StanzaError::new(Condition::JidMalformed))?;
                Ok(jid.bare())
            }
            (None, Some(nick)) => {
                let occupant = self.state.occupants.named(nick);
                let occupant = occupant.ok_or(StanzaError::new(Condition::ItemNotFound))?;
                occupant.account_jid().ok_or(StanzaError::new(Condition::ItemNotFound))
            }
            (None, None) => Err(StanzaError::new(Condition::BadRequest)),
        }
    }

    /// Begins a change, which has the room for itself.
    pub(super) fn change(
        &mut self,
        record: &Arc<RoomRecord>,
        mut change: Change,
        asker: Asker,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) {
        if let Change::Members { changes, .. } = &mut change {
            for member in changes.iter_mut().filter(|member| member.is_member()) {
                member.since = self.state.newest;
            }
        }
        let facts = self.state.facts_of(&change, record, asker.account().as_ref(), cx);
        let question = change.question(record, facts);
        self.hold();
        self.ask(key, question, Step::Change { record: record.clone(), change, asker }, cx);
    }
}

impl RoomState {
    /// Tells all that an occupant is something else now.
    pub(super) fn tell_changed(&mut self, record: &RoomRecord, nick: &str, said: &Said<'_>, cx: &mut Cx<'_>) {
        self.note_role(record, nick, cx);
        let client = self.occupants.named(nick).and_then(|occupant| occupant.clients.first());
        if let Some(client) = client {
            let client = client.jid.clone();
            self.tell_presence(record, &client, said, cx);
        }
    }

    /// What accounts are to the room has changed: occupants become something else, or leave.
    pub(super) fn members_changed(
        &mut self,
        record: &RoomRecord,
        changes: &[RoomMember],
        actor: Option<&str>,
        cx: &mut Cx<'_>,
    ) {
        for (nick, affiliation, reason) in self.occupants_changed(record, changes) {
            // An account and its domain may be among the changes.
            if self.occupants.named(&nick).is_none_or(|of| of.affiliation == affiliation) {
                continue;
            }
            let said = Said { actor, reason: Some(reason), ..Said::default() };
            let is_shut_out = record.config.members_only && affiliation < RoomAffiliation::Member;
            if affiliation == RoomAffiliation::Outcast {
                self.expel(record, &nick, &Said { codes: &[BANNED], ..said }, cx);
            } else if is_shut_out {
                self.expel(record, &nick, &Said { codes: &[NO_MEMBER], ..said }, cx);
            } else {
                let role = role_of(record, affiliation);
                self.occupants.set(&nick, affiliation, role);
                self.tell_changed(record, &nick, &Said { actor: None, ..said }, cx);
            }
        }
    }

    /// Accounts that are not in the room are told that their affiliation has changed, if they are online (XEP-0045 §17.1, code 101). Who may not know of the
    /// room is not told, nor who did it itself; nor is anybody of a change of very many.
    pub(super) fn tell_absent(
        &self,
        before: &RoomRecord,
        after: &RoomRecord,
        changes: &[RoomMember],
        by: Option<&BareJid>,
        cx: &mut Cx<'_>,
    ) {
        if changes.len() > TOLD_MAX || after.config.locked {
            return;
        }
        // Of several changes of one account the last counts.
        let last: BTreeMap<&BareJid, &RoomMember> =
            changes.iter().map(|change| (&change.jid, change)).collect();
        for (account, change) in last {
            let (was, is) = (before.affiliation(account.as_str()), after.affiliation(account.as_str()));
            let may_know = after.config.public || was.max(is) >= RoomAffiliation::Member;
            if was == is || !may_know || account.local().is_none() || by == Some(account) {
                continue;
            }
            let is_in = self.occupants.of_account(account.as_str()).next().is_some();
            if is_in || cx.reachable(self.domain(), &account.to_jid()).is_none() {
                continue;
            }
            // Nobody keeps it who is not there.
            let mut told = Stanza::message(MessageType::Headline).with_from(self.address.clone());
            told.to = Some(account.to_jid());
            told.payload.push_element(&user::changed_affiliation(is, &change.reason));
            cx.route(told);
        }
    }

    /// The nicks of the occupants whose affiliation is another now, that, and why. For all domains together the occupants are gone through once.
    fn occupants_changed<'a>(
        &self,
        record: &RoomRecord,
        changes: &'a [RoomMember],
    ) -> Vec<(String, RoomAffiliation, &'a str)> {
        let (accounts, domains): (Vec<_>, Vec<_>) =
            changes.iter().partition(|change| change.jid.local().is_some());
        let by_domain: Map<&str, &RoomMember> =
            domains.into_iter().map(|change| (change.jid.as_str(), change)).collect();
        let of_accounts = accounts
            .into_iter()
            .flat_map(|change| self.occupants.of_account(change.jid.as_str()).map(move |of| (of, change)));
        let all = if by_domain.is_empty() { None } else { Some(self.occupants.iter()) };
        let of_domains = all.into_iter().flatten();
        let of_domains =
            of_domains.filter_map(|of| Some((of, *by_domain.get(of.clients.first()?.jid.domain())?)));
        let changed = of_accounts.chain(of_domains).filter_map(|(of, change)| {
            let affiliation = record.affiliation(of.account());
            (affiliation != of.affiliation).then(|| (of.nick().to_owned(), affiliation, &*change.reason))
        });
        changed.collect()
    }

    /// The room is configured otherwise (XEP-0045 §10.2.1).
    pub(super) fn configured(&mut self, before: &RoomRecord, after: &RoomRecord, cx: &mut Cx<'_>) {
        let (was, is) = (&before.config, &after.config);
        if was.non_anonymous != is.non_anonymous {
            self.occupants.forget_snapshots();
        }
        if is.members_only && !was.members_only {
            let shut_out = self.occupants.iter().filter(|of| of.affiliation < RoomAffiliation::Member);
            let nicks: Vec<String> = shut_out.map(|occupant| occupant.nick().to_owned()).collect();
            for nick in nicks {
                self.expel(after, &nick, &Said { codes: &[MEMBERS_ONLY], ..Said::default() }, cx);
            }
        }
        let mut codes = Vec::new();
        match (was.archive, is.archive) {
            (false, true) => codes.push(LOGGED),
            (true, false) => codes.push(NOT_LOGGED),
            _ => {}
        }
        match (was.non_anonymous, is.non_anonymous) {
            (false, true) => codes.push(NON_ANONYMOUS_NOW),
            (true, false) => codes.push(SEMI_ANONYMOUS_NOW),
            _ => {}
        }
        codes.push(CONFIG_CHANGED);
        if was.presence_broadcast != is.presence_broadcast {
            self.note_broadcast(after, cx);
        }
        if was.locked {
            // Nobody else is there who knew it.
            return;
        }
        let message = of_room(&self.address, &user::statuses(&codes));
        self.give_all(&[crate::message::RoomStanza::for_all(message)], &[], cx);
    }
}
