//! The namespaces this server speaks, each with the document that defines it.

macro_rules! namespaces {
    ($($(#[$meta:meta])* $name:ident = $uri:literal;)+) => {
        $($(#[$meta])* pub const $name: &str = $uri;)+
    };
}

namespaces! {
    /// Content of client streams (RFC 6120 §4.8.2).
    CLIENT = "jabber:client";
    /// Content of server streams (RFC 6120 §4.8.2).
    SERVER = "jabber:server";
    /// Stream header, features and errors (RFC 6120 §4.8.1).
    STREAMS = "http://etherx.jabber.org/streams";
    /// Stream error conditions (RFC 6120 §4.9.2).
    STREAM_ERRORS = "urn:ietf:params:xml:ns:xmpp-streams";
    /// Stanza error conditions (RFC 6120 §8.3.2).
    STANZA_ERRORS = "urn:ietf:params:xml:ns:xmpp-stanzas";
    /// STARTTLS (RFC 6120 §5).
    TLS = "urn:ietf:params:xml:ns:xmpp-tls";
    /// SASL (RFC 6120 §6).
    SASL = "urn:ietf:params:xml:ns:xmpp-sasl";
    /// Extensible SASL profile (XEP-0388).
    SASL2 = "urn:xmpp:sasl:2";
    /// Resource binding (RFC 6120 §7).
    BIND = "urn:ietf:params:xml:ns:xmpp-bind";
    /// Bind 2 (XEP-0386).
    BIND2 = "urn:xmpp:bind:0";
    /// Block lists (XEP-0191).
    BLOCKING = "urn:xmpp:blocking";
    /// Why a stanza to somebody who is blocked is refused (XEP-0191 §3.4).
    BLOCKING_ERRORS = "urn:xmpp:blocking:errors";
    /// Privacy lists (XEP-0016).
    PRIVACY = "jabber:iq:privacy";
    /// Session establishment, a no-op kept for old clients (RFC 3921 §3).
    SESSION = "urn:ietf:params:xml:ns:xmpp-session";
    /// `<open/>` and `<close/>` of XMPP over WebSocket (RFC 7395).
    FRAMING = "urn:ietf:params:xml:ns:xmpp-framing";
    /// Roster (RFC 6121 §2).
    ROSTER = "jabber:iq:roster";
    /// That rosters have versions (RFC 6121 §2.6.1).
    ROSTER_VERSIONS = "urn:xmpp:features:rosterver";
    /// That subscriptions are granted in advance (RFC 6121 §3.4.1).
    PRE_APPROVAL = "urn:xmpp:features:pre-approval";
    /// Service discovery, what an entity is (XEP-0030).
    DISCO_INFO = "http://jabber.org/protocol/disco#info";
    /// Service discovery, what an entity has (XEP-0030).
    DISCO_ITEMS = "http://jabber.org/protocol/disco#items";
    /// Ad-hoc commands (XEP-0050).
    COMMANDS = "http://jabber.org/protocol/commands";
    /// Entity capabilities (XEP-0115).
    CAPS = "http://jabber.org/protocol/caps";
    /// Entity capabilities 2.0 (XEP-0390).
    CAPS_2 = "urn:xmpp:caps";
    /// Hashes (XEP-0300).
    HASHES = "urn:xmpp:hashes:2";
    /// Advanced message processing (XEP-0079).
    AMP = "http://jabber.org/protocol/amp";
    /// Which rules were met, in an error (XEP-0079 §3.4.3).
    AMP_ERRORS = "http://jabber.org/protocol/amp#errors";
    /// Ping (XEP-0199).
    PING = "urn:xmpp:ping";
    /// Message carbons (XEP-0280).
    CARBONS = "urn:xmpp:carbons:2";
    /// Stanza forwarding (XEP-0297).
    FORWARD = "urn:xmpp:forward:0";
    /// Client state indication (XEP-0352).
    CSI = "urn:xmpp:csi:0";
    /// Delivery receipts (XEP-0184).
    RECEIPTS = "urn:xmpp:receipts";
    /// Unique and stable stanza IDs (XEP-0359).
    STANZA_ID = "urn:xmpp:sid:0";
    /// JSON containers (XEP-0335).
    JSON = "urn:xmpp:json:0";
    /// Stream limits advertisement (XEP-0478).
    STREAM_LIMITS = "urn:xmpp:stream-limits:0";
    /// Stream management (XEP-0198).
    SM = "urn:xmpp:sm:3";
    /// Delayed delivery (XEP-0203).
    DELAY = "urn:xmpp:delay";
    /// Publish-subscribe (XEP-0060).
    PUBSUB = "http://jabber.org/protocol/pubsub";
    /// Publish-subscribe events (XEP-0060).
    PUBSUB_EVENT = "http://jabber.org/protocol/pubsub#event";
    /// Publish-subscribe owner use cases (XEP-0060).
    PUBSUB_OWNER = "http://jabber.org/protocol/pubsub#owner";
    /// Publish-subscribe error conditions (XEP-0060).
    PUBSUB_ERRORS = "http://jabber.org/protocol/pubsub#errors";
    /// Form type of a node's configuration (XEP-0060 §16.4.4).
    PUBSUB_NODE_CONFIG = "http://jabber.org/protocol/pubsub#node_config";
    /// Form type of a node's meta-data (XEP-0060 §16.4.3).
    PUBSUB_META_DATA = "http://jabber.org/protocol/pubsub#meta-data";
    /// Form type of publish options (XEP-0060 §16.4.5).
    PUBSUB_PUBLISH_OPTIONS = "http://jabber.org/protocol/pubsub#publish-options";
    /// Data forms (XEP-0004).
    DATA_FORMS = "jabber:x:data";
    /// In-band registration (XEP-0077).
    REGISTER = "jabber:iq:register";
    /// Stream feature of in-band registration (XEP-0077 §8).
    REGISTER_FEATURE = "http://jabber.org/features/iq-register";
    /// Stream feature of registration by an invitation (XEP-0445).
    REGISTER_BY_TOKEN = "urn:xmpp:ibr-token:0";
    /// The token of an invitation, before a registration or in a request for a subscription (XEP-0445, XEP-0379).
    PREAUTH = "urn:xmpp:pars:0";
    /// Message archive management (XEP-0313), and its preferences (XEP-0441).
    MAM = "urn:xmpp:mam:2";
    /// What `urn:xmpp:mam:2` did not have from its beginning (XEP-0313).
    MAM_EXTENDED = "urn:xmpp:mam:2#extended";
    /// Chat markers (XEP-0333).
    CHAT_MARKERS = "urn:xmpp:chat-markers:0";
    /// Last message correction (XEP-0308).
    CORRECTION = "urn:xmpp:message-correct:0";
    /// Rooms (XEP-0045).
    MUC = "http://jabber.org/protocol/muc";
    /// What occupants of a room are told (XEP-0045).
    MUC_USER = "http://jabber.org/protocol/muc#user";
    /// What moderators and admins of a room do (XEP-0045).
    MUC_ADMIN = "http://jabber.org/protocol/muc#admin";
    /// What owners of a room do (XEP-0045).
    MUC_OWNER = "http://jabber.org/protocol/muc#owner";
    /// Form type of a room's configuration (XEP-0045 §10.2).
    MUC_ROOM_CONFIG = "http://jabber.org/protocol/muc#roomconfig";
    /// Form type of what a room says of itself (XEP-0045 §6.4).
    MUC_ROOM_INFO = "http://jabber.org/protocol/muc#roominfo";
    /// Form type of a request for voice (XEP-0045 §7.13).
    MUC_REQUEST = "http://jabber.org/protocol/muc#request";
    /// Form type of the registration with a room (XEP-0045 §7.10).
    MUC_REGISTER = "http://jabber.org/protocol/muc#register";
    /// That messages of a room keep the id that their sender gave them (XEP-0045 §15.6).
    MUC_STABLE_ID = "http://jabber.org/protocol/muc#stable_id";
    /// That a room answers pings of occupants to themselves (XEP-0410).
    MUC_SELF_PING = "http://jabber.org/protocol/muc#self-ping-optimization";
    /// MUC Light: rooms whose occupants are accounts.
    MUCLIGHT = "urn:xmpp:muclight:0";
    /// MUC Light: the configuration of a room.
    MUCLIGHT_CONFIGURATION = "urn:xmpp:muclight:0#configuration";
    /// MUC Light: the occupants of a room.
    MUCLIGHT_AFFILIATIONS = "urn:xmpp:muclight:0#affiliations";
    /// MUC Light: both of them.
    MUCLIGHT_INFO = "urn:xmpp:muclight:0#info";
    /// MUC Light: creating a room.
    MUCLIGHT_CREATE = "urn:xmpp:muclight:0#create";
    /// MUC Light: destroying a room.
    MUCLIGHT_DESTROY = "urn:xmpp:muclight:0#destroy";
    /// MUC Light: who may not add an account to rooms.
    MUCLIGHT_BLOCKING = "urn:xmpp:muclight:0#blocking";
    /// Ids of occupants of rooms (XEP-0421).
    OCCUPANT_ID = "urn:xmpp:occupant-id:0";
    /// Moderation of messages in rooms (XEP-0425).
    MODERATE = "urn:xmpp:message-moderate:1";
    /// Private XML storage (XEP-0049).
    PRIVATE = "jabber:iq:private";
    /// vcard-temp (XEP-0054).
    VCARD = "vcard-temp";
    /// Avatars based on it (XEP-0153).
    VCARD_UPDATE = "vcard-temp:x:update";
    /// Inbox (XEP-0430).
    INBOX = "urn:xmpp:inbox:1";
    /// The inbox of MongooseIM.
    INBOX_MIM = "erlang-solutions.com:xmpp:inbox:0";
    /// A conversation of the inbox of MongooseIM.
    INBOX_MIM_CONVERSATION = "erlang-solutions.com:xmpp:inbox:0#conversation";
    /// Message retraction (XEP-0424).
    RETRACT = "urn:xmpp:message-retract:1";
    /// That tombstones are left of messages that were retracted (XEP-0424 §5).
    RETRACT_TOMBSTONE = "urn:xmpp:message-retract:1#tombstone";
    /// Message reactions (XEP-0444).
    REACTIONS = "urn:xmpp:reactions:0";
    /// OMEMO encryption (XEP-0384).
    OMEMO = "urn:xmpp:omemo:2";
    /// OMEMO encryption, as most clients have it.
    OMEMO_OLD = "eu.siacs.conversations.axolotl";
    /// Validation of data forms (XEP-0122).
    DATA_VALIDATION = "http://jabber.org/protocol/xdata-validate";
    /// Message processing hints (XEP-0334).
    HINTS = "urn:xmpp:hints";
    /// SASL channel-binding type capability (XEP-0440).
    SASL_CB = "urn:xmpp:sasl-cb:0";
    /// Fast authentication streamlining tokens (XEP-0484).
    FAST = "urn:xmpp:fast:0";
    /// Result set management (XEP-0059).
    RSM = "http://jabber.org/protocol/rsm";
    /// What a provider sends to one device: our own.
    NOTIFICATION = "urn:carillon:notification:0";
    /// Topics: our own.
    TOPICS = "urn:carillon:topics:0";
    /// Tickets of the matchmaker, which accounts enter themselves.
    MATCHES = "urn:carillon:matches:0";
    /// How many accounts one address may register, in the form of in-band registration.
    REGISTRATION = "urn:carillon:registration:0";
    /// When a client that was refused may come back: our own.
    RETRY = "urn:carillon:retry:0";
    /// The `xml` prefix, always bound (XML Namespaces §3).
    XML = "http://www.w3.org/XML/1998/namespace";
    /// The `xmlns` prefix, never to be bound (XML Namespaces §3).
    XMLNS = "http://www.w3.org/2000/xmlns/";
}
