//! Rooms: conversations of many (XEP-0045), at `rooms.DOMAIN`.

use super::{DomainId, RoomId, UnixMs};
use bytes::Bytes;
use carillon_wire::jid::BareJid;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The first label of the host at which rooms have their addresses, in every domain.
pub const ROOM_HOST: &str = "rooms";

/// The address of a room, from which its home is computed.
pub fn room_address(name: &str, domain: &str) -> String {
    [name, "@", ROOM_HOST, ".", domain].concat()
}

/// The domain and name of a room.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RoomKey {
    /// Its domain.
    pub domain: DomainId,
    /// Its name: the local part of its address.
    pub name: Arc<str>,
}

/// A room as the store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomRecord {
    /// Its number.
    pub id: RoomId,
    /// Its domain.
    pub domain: DomainId,
    /// The local part of its address.
    pub name: Box<str>,
    /// How it behaves.
    pub config: RoomConfig,
    /// Its members, sorted by JID. Accounts that are not listed have [`RoomAffiliation::None`].
    pub members: Vec<RoomMember>,
    /// Its subject, unless it has none.
    pub subject: Option<Box<RoomSubject>>,
    /// When it was created.
    pub created: UnixMs,
}

impl RoomRecord {
    /// What the room has of an account that is listed.
    pub fn member(&self, jid: &str) -> Option<&RoomMember> {
        let at = self.members.binary_search_by(|member| member.jid.as_str().cmp(jid)).ok()?;
        self.members.get(at)
    }

    /// The affiliation of an account.
    pub fn affiliation(&self, jid: &str) -> RoomAffiliation {
        self.member(jid).map_or(RoomAffiliation::None, |member| member.affiliation)
    }

    /// The list of members after these changes. One that has neither an affiliation nor a nick is dropped from it.
    pub fn members_after(&self, changes: &[RoomMember]) -> Vec<RoomMember> {
        // Of several changes of one account the last counts. One walk over both: thousands are changed together.
        let changes: BTreeMap<&str, &RoomMember> =
            changes.iter().map(|change| (change.jid.as_str(), change)).collect();
        let mut changes = changes.into_values().peekable();
        let mut members = Vec::with_capacity(self.members.len() + changes.len());
        for member in &self.members {
            let jid = member.jid.as_str();
            while let Some(new) = changes.next_if(|change| change.jid.as_str() < jid) {
                members.push(new.clone());
            }
            members.push(changes.next_if(|change| change.jid.as_str() == jid).unwrap_or(member).clone());
        }
        members.extend(changes.cloned());
        members.retain(|member| !member.is_nothing());
        members
    }

    /// Bytes that it takes in memory beside its own size.
    pub fn bytes(&self) -> usize {
        let members: usize = self.members.iter().map(RoomMember::bytes).sum();
        let subject = self.subject.as_ref().map_or(0, |subject| subject.stanza.len() + subject.nick.len());
        let RoomConfig { title, description, password, .. } = &self.config;
        self.name.len() + members + subject + title.len() + description.len() + password.len()
    }
}

crate::form! { struct RoomRecord { id, domain, name, config, members, subject, created } }

/// An account that a room lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomMember {
    /// The account.
    pub jid: BareJid,
    /// Its affiliation.
    pub affiliation: RoomAffiliation,
    /// The nick that is reserved for it, or empty (XEP-0045 §7.10).
    pub nick: Box<str>,
    /// Why it has this affiliation, or empty.
    pub reason: Box<str>,
}

crate::form! { struct RoomMember { jid, affiliation, nick, reason } }

impl RoomMember {
    /// Whether it says nothing.
    pub fn is_nothing(&self) -> bool {
        self.affiliation == RoomAffiliation::None && self.nick.is_empty()
    }

    /// Bytes that it takes in memory.
    pub fn bytes(&self) -> usize {
        size_of::<RoomMember>() + self.jid.as_str().len() + self.nick.len() + self.reason.len()
    }
}

/// What an account is to a room for good (XEP-0045 §5.2).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum RoomAffiliation {
    /// It may not enter.
    Outcast,
    /// Nothing.
    #[default]
    None,
    /// It may enter a members-only room.
    Member,
    /// It may change who is a member or an outcast, and moderates.
    Admin,
    /// It may do everything.
    Owner,
}

crate::form! { enum RoomAffiliation { 0 = Outcast, 1 = None, 2 = Member, 3 = Admin, 4 = Owner } }

/// What an occupant may do while it is in the room (XEP-0045 §5.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum RoomRole {
    /// Nothing: it is not in the room.
    #[default]
    None,
    /// Listen.
    Visitor,
    /// Speak.
    Participant,
    /// Decide who speaks, and remove occupants.
    Moderator,
}

crate::form! { enum RoomRole { 0 = None, 1 = Visitor, 2 = Participant, 3 = Moderator } }

/// How a room behaves. The names are those of XEP-0045's `muc#roomconfig_` form fields, without that prefix.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "so is the form")]
pub struct RoomConfig {
    /// A name for people, at most 256 bytes (`roomname`).
    pub title: String,
    /// What it is about, at most 1024 bytes (`roomdesc`).
    pub description: String,
    /// Whether it can be found (`publicroom`).
    pub public: bool,
    /// Whether it stays when the last occupant has left (`persistentroom`).
    pub persistent: bool,
    /// Whether only members may enter (`membersonly`).
    pub members_only: bool,
    /// Whether those who enter without an affiliation may not speak until they are given voice (`moderatedroom`).
    pub moderated: bool,
    /// Whether everyone sees the occupants' addresses; else only moderators do (`whois`).
    pub non_anonymous: bool,
    /// The password for those who enter, or empty; at most 256 bytes (`roomsecret`).
    pub password: String,
    /// Occupants at most, 1 to what the node allows; 0 for as many as that (`maxusers`). Admins and owners still enter.
    pub max_users: u32,
    /// Whether occupants may invite; else only admins and owners (`allowinvites`).
    pub allow_invites: bool,
    /// Whether participants may change the subject; else only moderators (`changesubject`).
    pub change_subject: bool,
    /// Who may send private messages (`allowpm`).
    pub allow_pm: AllowPm,
    /// Whether messages are kept in the room's archive (`enablelogging`).
    pub archive: bool,
    /// How many messages those who enter are given if they ask for no other number (`maxhistoryfetch`).
    pub history: u32,
    /// Whether it has been configured once: until then nobody but its owner enters (XEP-0045 §10.1.2).
    pub locked: bool,
}

impl RoomConfig {
    /// Bytes of a title.
    pub const TITLE_BYTES_MAX: usize = 256;
    /// Bytes of a description.
    pub const DESCRIPTION_BYTES_MAX: usize = 1024;
    /// Bytes of a password.
    pub const PASSWORD_BYTES_MAX: usize = 256;
    /// Messages that those who enter can be given at most.
    pub const HISTORY_MAX: u32 = 100;
}

impl Default for RoomConfig {
    fn default() -> RoomConfig {
        RoomConfig {
            title: String::new(),
            description: String::new(),
            public: true,
            persistent: false,
            members_only: false,
            moderated: false,
            non_anonymous: false,
            password: String::new(),
            max_users: 0,
            allow_invites: true,
            change_subject: false,
            allow_pm: AllowPm::Anyone,
            archive: true,
            history: 20,
            locked: false,
        }
    }
}

crate::form! {
    struct RoomConfig {
        title,
        description,
        public,
        persistent,
        members_only,
        moderated,
        non_anonymous,
        password,
        max_users,
        allow_invites,
        change_subject,
        allow_pm,
        archive,
        history,
        locked,
    }
}

/// Who may send private messages to occupants of a room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AllowPm {
    /// Every occupant.
    #[default]
    Anyone,
    /// Those with voice.
    Participants,
    /// Moderators.
    Moderators,
    /// Nobody.
    None,
}

crate::form! { enum AllowPm { 0 = Anyone, 1 = Participants, 2 = Moderators, 3 = None } }

/// The subject of a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomSubject {
    /// The nick of whoever set it.
    pub nick: Box<str>,
    /// The account of whoever set it.
    pub by: BareJid,
    /// When.
    pub set: UnixMs,
    /// The message's children, as XML in namespace `jabber:client`.
    pub stanza: Bytes,
}

crate::form! { struct RoomSubject { nick, by, set, stanza } }

/// A room in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomListed {
    /// The local part of its address.
    pub name: Box<str>,
    /// Its name for people, or empty.
    pub title: Box<str>,
    /// Whether it can be found by everybody.
    pub public: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(local: &str, affiliation: RoomAffiliation, nick: &str) -> RoomMember {
        let jid = BareJid::new(&format!("{local}@d")).expect("an address");
        RoomMember { jid, affiliation, nick: nick.into(), reason: "".into() }
    }

    #[test]
    fn members_are_kept_in_order_and_those_who_are_nothing_are_dropped() {
        let mut record = RoomRecord {
            id: RoomId(1),
            domain: DomainId(1),
            name: "r".into(),
            config: RoomConfig::default(),
            members: vec![member("b", RoomAffiliation::Owner, "")],
            subject: None,
            created: UnixMs(0),
        };
        record.members = record.members_after(&[
            member("c", RoomAffiliation::Member, ""),
            member("a", RoomAffiliation::None, "reserved"),
            member("d", RoomAffiliation::None, ""),
        ]);
        let jids: Vec<&str> = record.members.iter().map(|member| member.jid.as_str()).collect();
        assert_eq!(jids, ["a@d", "b@d", "c@d"]);
        assert_eq!(record.affiliation("b@d"), RoomAffiliation::Owner);
        assert_eq!(record.affiliation("x@d"), RoomAffiliation::None);
        let twice = [member("c", RoomAffiliation::Outcast, ""), member("c", RoomAffiliation::Admin, "")];
        record.members = record.members_after(&twice);
        assert_eq!(record.affiliation("c@d"), RoomAffiliation::Admin, "the last change counts");
        record.members = record.members_after(&[member("a", RoomAffiliation::None, "")]);
        assert!(record.member("a@d").is_none());
    }
}
