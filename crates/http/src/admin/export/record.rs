//! The lines of an export.

use crate::provider::conversations::ConversationView;
use crate::provider::items::ItemView;
use crate::provider::messages::MessageView;
use crate::provider::notifications::NotificationView;
use crate::push::api::RegistrationView;
use crate::push_service::api::PushEndpointView;
use crate::values::time::Time;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use carillon_core::model::{
    Access, Contact, PrivacyRule, RoomAffiliation, RoomKind, RuleAbout, ScramKeys, StanzaKind, StanzaKinds,
    SubscriptionState,
};

/// Something that is kept of an account.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum ExportRecord {
    /// The account.
    Account {
        /// Its bare JID.
        jid: String,
        /// `enabled` or `disabled`.
        state: &'static str,
        /// When it was created.
        created_at: Time,
        /// When it was available for the last time, as far as that was noted.
        #[serde(skip_serializing_if = "Option::is_none")]
        last_available_at: Option<Time>,
    },
    /// The keys of its password (RFC 5802), where they are asked for.
    Credentials {
        /// Those for SCRAM-SHA-1.
        #[serde(skip_serializing_if = "Option::is_none")]
        scram_sha1: Option<KeysRecord>,
        /// Those for SCRAM-SHA-256.
        #[serde(skip_serializing_if = "Option::is_none")]
        scram_sha256: Option<KeysRecord>,
    },
    /// A topic that it follows.
    Topic {
        /// Its name.
        name: String,
    },
    /// A contact, or somebody who has asked to be one.
    Contact(ContactRecord),
    /// An address that it blocks.
    Blocked {
        /// The address.
        jid: String,
    },
    /// A privacy list (XEP-0016).
    PrivacyList {
        /// Its name.
        name: String,
        /// Whether it is the default list. That begins with the addresses that are blocked.
        is_default: bool,
        /// Its rules, in their order.
        rules: Vec<PrivacyRuleRecord>,
    },
    /// An element that its clients keep (XEP-0049).
    Private {
        /// The element.
        xml: String,
    },
    /// Its vCard (XEP-0054).
    Vcard {
        /// The element.
        xml: String,
    },
    /// A node of it (XEP-0163): avatars, bookmarks, keys.
    Node {
        /// The node's name.
        name: String,
        /// When it was created.
        created_at: Time,
        /// Who may read it.
        #[schema(value_type = String)]
        access_model: Access,
    },
    /// An item of one of its nodes.
    Item {
        /// The node's name.
        node: String,
        /// The item.
        #[serde(flatten)]
        item: ItemView,
    },
    /// A conversation, and what is unread in it.
    Conversation(ConversationView),
    /// A message in its archive.
    Message(MessageView),
    /// A message that waits for it.
    OfflineMessage {
        /// When it was received.
        received_at: Time,
        /// When it ends, if it does.
        #[serde(skip_serializing_if = "Option::is_none")]
        expires_at: Option<Time>,
        /// The stanza.
        xml: String,
    },
    /// A room that lists it.
    Room {
        /// The room's address.
        room: String,
        /// The room's name for people.
        title: String,
        /// What the account is to it.
        #[schema(value_type = String)]
        affiliation: RoomAffiliation,
        /// By which protocol it is used.
        #[schema(value_type = String)]
        protocol: RoomKind,
    },
    /// A message of it in the archive of such a room.
    RoomMessage {
        /// The room's address.
        room: String,
        /// The message.
        #[serde(flatten)]
        message: MessageView,
    },
    /// A room, host of rooms or account that it blocks in MUC Light.
    RoomBlock {
        /// The address.
        jid: String,
        /// Whether that is a room, or a host of rooms.
        is_room: bool,
    },
    /// A notification to it.
    Notification(Box<NotificationView>),
    /// A registration for push (XEP-0357).
    PushRegistration(RegistrationView),
    /// An endpoint of this server as a push service, without its URL.
    PushEndpoint(PushEndpointView),
    /// A file that it uploaded, or a slot for one (XEP-0363).
    Upload {
        /// Its id.
        id: String,
        /// Its name.
        name: String,
        /// Its media type.
        media_type: String,
        /// Its size.
        bytes: u64,
        /// When it expires.
        expires_at: Time,
        /// Whether it was uploaded.
        is_uploaded: bool,
    },
    /// An invitation by it.
    Invitation {
        /// Its number.
        id: u64,
        /// The only local part that can be registered with it; none for any.
        localpart: Option<String>,
        /// How often it can be used.
        uses_max: u32,
        /// How often it was used.
        uses: u32,
        /// When it was made.
        created_at: Time,
        /// When it expires.
        expires_at: Time,
    },
    /// Something could not be read: the export is not whole.
    Error {
        /// Why.
        detail: String,
    },
    /// Everything was told.
    End {
        /// How many lines there are before this one.
        records: u64,
    },
}

/// What an account's password is proved by, without the password; each but `iterations` in base64.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct KeysRecord {
    /// The salt.
    salt: String,
    /// How often it is hashed.
    iterations: u32,
    /// What proves the client.
    stored_key: String,
    /// What proves the server.
    server_key: String,
}

impl KeysRecord {
    pub(super) fn of(keys: &ScramKeys) -> KeysRecord {
        KeysRecord {
            salt: STANDARD.encode(&keys.salt),
            iterations: keys.iterations,
            stored_key: STANDARD.encode(&keys.stored_key),
            server_key: STANDARD.encode(&keys.server_key),
        }
    }
}

/// A rule of a privacy list.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct PrivacyRuleRecord {
    /// Its place.
    order: u32,
    /// `allow` or `deny`.
    action: &'static str,
    /// Whom it is about: `all`, `jid:` with an address, `group:` with a name, or `subscription:` with `both`, `to`, `from` or `none`.
    about: String,
    /// The stanzas that it is about: `message`, `iq`, `presence-in`, `presence-out`; none of them for all.
    kinds: Vec<&'static str>,
}

impl PrivacyRuleRecord {
    pub(super) fn of(rule: &PrivacyRule) -> PrivacyRuleRecord {
        let kinds = [
            (StanzaKind::Message, "message"),
            (StanzaKind::Iq, "iq"),
            (StanzaKind::PresenceIn, "presence-in"),
            (StanzaKind::PresenceOut, "presence-out"),
        ];
        let named =
            kinds.into_iter().filter(|(kind, _)| rule.kinds != StanzaKinds::ALL && rule.kinds.has(*kind));
        PrivacyRuleRecord {
            order: rule.order,
            action: if rule.denies { "deny" } else { "allow" },
            about: match &rule.about {
                RuleAbout::All => "all".to_owned(),
                RuleAbout::Jid(jid) => format!("jid:{jid}"),
                RuleAbout::Group(name) => format!("group:{name}"),
                RuleAbout::Subscription(state) => {
                    let state = match state {
                        SubscriptionState::Both => "both",
                        SubscriptionState::To => "to",
                        SubscriptionState::From => "from",
                        SubscriptionState::None => "none",
                    };
                    format!("subscription:{state}")
                }
            },
            kinds: named.map(|(_, name)| name).collect(),
        }
    }
}

/// A contact of an account.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct ContactRecord {
    /// Its bare JID.
    jid: String,
    /// What the account calls it; empty for nothing.
    name: String,
    /// The groups that the account has put it in.
    groups: Vec<String>,
    /// The account sees the contact's presence.
    to: bool,
    /// The contact sees the account's presence.
    from: bool,
    /// The account has asked to see the contact's.
    asked: bool,
    /// The contact has asked to see the account's.
    was_asked: bool,
    /// The account agrees when the contact asks.
    approved: bool,
    /// Whether the account's clients show it. One that has only asked is not shown.
    is_listed: bool,
}

impl ContactRecord {
    pub(super) fn of(contact: &Contact) -> ContactRecord {
        let standing = contact.standing;
        ContactRecord {
            jid: contact.jid.as_str().to_owned(),
            name: contact.name.to_string(),
            groups: contact.groups.iter().map(ToString::to_string).collect(),
            to: standing.to,
            from: standing.from,
            asked: standing.pending_out,
            was_asked: standing.pending_in,
            approved: standing.approved,
            is_listed: contact.is_listed,
        }
    }
}
