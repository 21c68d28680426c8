//! Rooms: conversations of many, at `rooms.DOMAIN` (XEP-0045) and `muclight.DOMAIN` (MUC Light).

use super::{ArchiveId, DomainId, RoomId, UnixMs};
use bytes::Bytes;
use carillon_wire::jid::BareJid;
use std::collections::BTreeMap;
use std::sync::Arc;

/// By which protocol the occupants of a room use it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum RoomKind {
    /// Clients enter and leave it (XEP-0045).
    #[default]
    Muc,
    /// Accounts are its occupants, whether they have a session or not (`urn:xmpp:muclight:0`).
    MucLight,
}

crate::form! { enum RoomKind { 0 = Muc, 1 = MucLight } }

impl RoomKind {
    /// All of them.
    pub const ALL: [RoomKind; 2] = [RoomKind::Muc, RoomKind::MucLight];

    /// The first label of the host at which such rooms have their addresses, in every domain.
    pub const fn host(self) -> &'static str {
        match self {
            RoomKind::Muc => "rooms",
            RoomKind::MucLight => "muclight",
        }
    }

    /// The address of a room, from which its home is computed.
    pub fn address(self, name: &str, domain: &str) -> String {
        [name, "@", self.host(), ".", domain].concat()
    }

    /// The kind of the rooms whose addresses have this host, and the name of their domain.
    pub fn of_host(host: &str) -> Option<(RoomKind, &str)> {
        let (label, domain) = host.split_once('.')?;
        RoomKind::ALL.into_iter().find(|kind| kind.host() == label).map(|kind| (kind, domain))
    }
}

/// The domain, kind and name of a room.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RoomKey {
    /// Its domain.
    pub domain: DomainId,
    /// Its kind.
    pub kind: RoomKind,
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
    /// Its kind.
    pub kind: RoomKind,
    /// The local part of its address.
    pub name: Box<str>,
    /// How it behaves.
    pub config: RoomConfig,
    /// Its members, sorted by JID. Accounts that are not listed have [`RoomAffiliation::None`]; a domain may be listed as an outcast.
    pub members: Vec<RoomMember>,
    /// Its subject, unless it has none.
    pub subject: Option<Box<RoomSubject>>,
    /// When it was created.
    pub created: UnixMs,
    /// How often the configuration or the members of a room of MUC Light have changed since.
    pub version: u32,
    /// The newest message of its archive when the record was read; 0 for none.
    pub newest: ArchiveId,
    /// The photos of its vCard.
    pub photos: Box<[PhotoHash]>,
}

impl RoomRecord {
    /// The version as clients are told it. No room ever has one that it had before, nor one of the same name that was removed.
    pub fn version_text(&self) -> String {
        room_version(self.id, self.version)
    }

    /// Behind which message of the archive an account is given what was said.
    pub fn heard_since(&self, jid: &str) -> ArchiveId {
        match self.config.members_history {
            RoomHistory::SinceMember if self.config.members_only => {
                self.member(jid).map_or(ArchiveId(u64::MAX), |member| member.since)
            }
            _ => ArchiveId(0),
        }
    }

    /// What the room has of an account that is listed.
    pub fn member(&self, jid: &str) -> Option<&RoomMember> {
        let at = self.members.binary_search_by(|member| member.jid.as_str().cmp(jid)).ok()?;
        self.members.get(at)
    }

    /// The affiliation of an account. One that has none of its own is an outcast where its domain is.
    pub fn affiliation(&self, jid: &str) -> RoomAffiliation {
        let of = |jid| self.member(jid).map_or(RoomAffiliation::None, |member| member.affiliation);
        match (of(jid), jid.split_once('@')) {
            (RoomAffiliation::None, Some((_, domain))) => of(domain).min(RoomAffiliation::None),
            (affiliation, _) => affiliation,
        }
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
            let change = changes.next_if(|change| change.jid.as_str() == jid);
            members.push(change.map_or_else(|| member.clone(), |change| change.clone().after(member)));
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
        let fields: usize = self.config.fields.iter().map(|(name, value)| name.len() + value.len()).sum();
        let photos = size_of_val(&*self.photos);
        self.name.len()
            + members
            + subject
            + title.len()
            + description.len()
            + password.len()
            + fields
            + photos
    }
}

crate::form! {
    struct RoomRecord {
        id,
        domain,
        kind,
        name,
        config,
        members,
        subject,
        created,
        version,
        newest,
        photos: since(5),
    }
}

/// The SHA-1 of a photo's bytes, by which clients know whether they have it (XEP-0153).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhotoHash(pub [u8; 20]);

crate::form! { struct PhotoHash(bytes) }

impl std::fmt::Display for PhotoHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A version of a room, as clients are told it.
pub fn room_version(room: RoomId, version: u32) -> String {
    format!("{:x}-{version:x}", room.0)
}

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
    /// The newest message of the room's archive when it became a member; 0 where it is none.
    pub since: ArchiveId,
}

crate::form! { struct RoomMember { jid, affiliation, nick, reason, since } }

impl RoomMember {
    /// An account of this affiliation, without nick and reason.
    pub fn new(jid: BareJid, affiliation: RoomAffiliation) -> RoomMember {
        RoomMember { jid, affiliation, nick: "".into(), reason: "".into(), since: ArchiveId(0) }
    }

    /// What there is of an account after this change. Whoever was a member stays one since the same message.
    pub fn after(self, before: &RoomMember) -> RoomMember {
        let since = if self.is_member() && before.is_member() { before.since } else { self.since };
        RoomMember { since, ..self }
    }

    /// Whether it may enter a members-only room.
    pub fn is_member(&self) -> bool {
        self.affiliation >= RoomAffiliation::Member
    }

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
    /// Whose presence others are shown (`presencebroadcast`).
    // Nodes of the release before know no such field.
    #[serde(skip_serializing_if = "PresenceBroadcast::is_anyone")]
    pub presence_broadcast: PresenceBroadcast,
    /// Whether messages are kept in the room's archive (`enablelogging`).
    pub archive: bool,
    /// How many messages those who enter are given at most (`maxhistoryfetch`).
    pub history: u32,
    /// Whether it has been configured once: until then nobody but its owner enters (XEP-0045 §10.1.2).
    pub locked: bool,
    /// What members of a room that only they may enter are given of what was said before they were.
    pub members_history: RoomHistory,
    /// The fields of a room of MUC Light beside its title, such as `subject`, by their names.
    pub fields: BTreeMap<String, String>,
    /// Days for which the archive keeps a message at most, up to [`Policy::ARCHIVE_DAYS_MAX`](super::Policy::ARCHIVE_DAYS_MAX); 0 for as long as the domain wants.
    #[serde(skip_serializing_if = "is_zero")]
    pub archive_days: u32,
}

/// Whether a number says nothing. Nodes of the release before know no such field.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl RoomConfig {
    /// That of a room of MUC Light: nobody finds it, and it stays while it has members, who know each other.
    pub fn light() -> RoomConfig {
        RoomConfig {
            public: false,
            persistent: true,
            members_only: true,
            non_anonymous: true,
            ..RoomConfig::default()
        }
    }

    /// Whether a room of this kind can be configured like this. The names of fields are for others to check.
    pub fn suits(&self, kind: RoomKind) -> bool {
        match kind {
            RoomKind::Muc => self.fields.is_empty(),
            RoomKind::MucLight => {
                let RoomConfig { public, persistent, members_only, non_anonymous, locked, .. } = *self;
                let is_long = |value: &String| value.len() > RoomConfig::FIELD_BYTES_MAX;
                (public, persistent, members_only, non_anonymous, locked) == (false, true, true, true, false)
                    && self.password.is_empty()
                    && !self.fields.values().any(is_long)
            }
        }
    }

    /// Bytes of a title.
    pub const TITLE_BYTES_MAX: usize = 256;
    /// Bytes of a description.
    pub const DESCRIPTION_BYTES_MAX: usize = 1024;
    /// Bytes of a password.
    pub const PASSWORD_BYTES_MAX: usize = 256;
    /// Bytes of a field of a room of MUC Light.
    pub const FIELD_BYTES_MAX: usize = 1024;
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
            presence_broadcast: PresenceBroadcast::Anyone,
            archive: true,
            history: 20,
            locked: false,
            members_history: RoomHistory::All,
            fields: BTreeMap::new(),
            archive_days: 0,
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
        members_history,
        fields,
        presence_broadcast: since(5),
        archive_days: since(5),
    }
}

/// What members of a room that only they may enter are given of what was said before they were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoomHistory {
    /// All of it.
    #[default]
    All,
    /// Nothing.
    SinceMember,
}

crate::form! { enum RoomHistory { 0 = All, 1 = SinceMember } }

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

/// Whose presence the occupants of a room are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PresenceBroadcast {
    /// That of every occupant.
    #[default]
    Anyone,
    /// That of those with voice.
    Participants,
    /// That of moderators.
    Moderators,
    /// Nobody's but one's own.
    None,
}

crate::form! { enum PresenceBroadcast { 0 = Anyone, 1 = Participants, 2 = Moderators, 3 = None } }

impl PresenceBroadcast {
    /// Whether it is that of every occupant.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
    fn is_anyone(&self) -> bool {
        *self == PresenceBroadcast::Anyone
    }

    /// Whether the presence of occupants with this role is shown.
    pub fn shows(self, role: RoomRole) -> bool {
        match self {
            PresenceBroadcast::Anyone => true,
            PresenceBroadcast::Participants => role >= RoomRole::Participant,
            PresenceBroadcast::Moderators => role >= RoomRole::Moderator,
            PresenceBroadcast::None => false,
        }
    }
}

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

/// What a message of a room is to the inboxes of its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoomEntry {
    /// Nothing: a marker, a correction of another message.
    Other,
    /// It is shown, and nobody need have read it: the room says what has changed.
    Shown,
    /// It is unread until it was read.
    Counted,
}

crate::form! { enum RoomEntry { 0 = Other, 1 = Shown, 2 = Counted } }

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

/// A room that lists an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomOfAccount {
    /// Its number.
    pub id: RoomId,
    /// The local part of its address.
    pub name: Box<str>,
    /// Its name for people, or empty.
    pub title: Box<str>,
    /// [`RoomRecord::version`]
    pub version: u32,
    /// What the account is to it.
    pub affiliation: RoomAffiliation,
}

/// Whom, or what, an account does not let add it to rooms of MUC Light.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RoomBlock {
    /// Whether it is a room, or the host of rooms; else it is an account or a domain.
    pub is_room: bool,
    /// The address, without a resource.
    pub jid: BareJid,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(local: &str, affiliation: RoomAffiliation, nick: &str) -> RoomMember {
        let jid = BareJid::new(&format!("{local}@d")).expect("an address");
        RoomMember { nick: nick.into(), ..RoomMember::new(jid, affiliation) }
    }

    #[test]
    fn members_are_kept_in_order_and_those_who_are_nothing_are_dropped() {
        let mut record = RoomRecord {
            id: RoomId(1),
            domain: DomainId(1),
            kind: RoomKind::Muc,
            name: "r".into(),
            config: RoomConfig::default(),
            members: vec![member("b", RoomAffiliation::Owner, "")],
            subject: None,
            created: UnixMs(0),
            version: 0,
            newest: ArchiveId(0),
            photos: Box::default(),
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
