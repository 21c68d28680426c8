//! What an operator decides, as the core reads it. Types and defaults are declared here and nowhere else; the binary's list of
//! settings gives each its key, its bounds and its sentence.

use crate::model::{AppService, BlockListBounds, NodeBounds, PrivacyBounds, RosterBounds};
use crate::sasl::{Mechanism, fast};

/// The settings of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Bounds on what a client may do.
    pub limits: Limits,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// Tokens for returning clients (XEP-0484).
    pub fast: fast::Settings,
    /// SASL mechanisms offered, strongest first.
    pub mechanisms: Vec<Mechanism>,
    /// PBKDF2 iterations of keys made here, at least 4096.
    pub scram_iterations: u32,
    /// A secret of the node that survives restarts. The SCRAM parameters of an account that does not exist are derived from
    /// it, so that they are the same each time.
    pub secret: [u8; 32],
    /// Names of the features that are disabled: none of their code runs.
    pub features_disabled: Vec<String>,
    /// How events of topics are delivered to their followers, and what rooms say to their occupants.
    pub fanout: Fanout,
    /// The light protocol.
    pub light: Light,
    /// Files that clients upload (XEP-0363).
    pub upload: Upload,
    /// Rooms of MUC Light.
    pub muclight: MucLight,
    /// Privacy lists (XEP-0016).
    pub privacy_lists: PrivacySettings,
    /// Waking apps by push services (XEP-0357).
    pub push: Push,
    /// Real-time matches.
    pub matches: Matches,
    /// Largest `ttl` of a notification, milliseconds.
    pub notification_ttl_max_ms: u64,
    /// For how long the name of an account that was removed is not given to whoever registers in-band, milliseconds.
    pub removed_names_held_ms: u64,
    /// Invitations to domains.
    pub invitations: Invitations,
    /// Milliseconds that a notification waits for a XEP-0184 receipt, from a client without XEP-0198, before it counts as
    /// acknowledged once the peer's TCP acknowledged its bytes.
    pub receipt_wait_ms: u64,
}

/// Bounds on what a client may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one stanza.
    pub stanza_bytes: usize,
    /// Bytes of one element before authentication.
    pub stanza_bytes_before_auth: usize,
    /// Depth of elements in a stanza.
    pub depth: u16,
    /// Failed SASL attempts after which a connection is closed.
    pub auth_attempts: u8,
    /// Failed logins from one address per `auth_window_ms`; 0 for no bound.
    pub auth_failures_per_address: u32,
    /// Failed logins from one address to one account per `auth_window_ms`; 0 for no bound.
    pub auth_failures_per_account_and_address: u32,
    /// Failed logins to one account per `auth_window_ms`; 0 for no bound. Addresses that logged in to it lately are exempt.
    pub auth_failures_per_account: u32,
    /// Accounts registered in-band from one address per `auth_window_ms`; 0 for no bound.
    pub registrations_per_address: u32,
    /// The window of the four above, milliseconds.
    pub auth_window_ms: u64,
    /// How fast the sessions of one account may send, together.
    pub rates: Rates,
    /// Chat messages kept for an absent account.
    pub offline_messages: u32,
    /// Bytes of these.
    pub offline_bytes: u64,
    /// Notifications waiting for one account.
    pub pending_notifications: u32,
    /// Stanzas a client with XEP-0198 may leave unacknowledged.
    pub unacknowledged: u32,
    /// Bytes of chat messages that are kept for it because they are unacknowledged.
    pub unacknowledged_bytes: usize,
    /// Bytes of what the clients of all sessions of the node have not acknowledged. Each shard has an even part; the largest queues end
    /// first.
    pub all_unacknowledged_bytes: usize,
    /// Operations waiting for one topic.
    pub topic_queue: usize,
    /// Affiliations of one topic.
    pub topic_affiliations: usize,
    /// Items kept by one topic.
    pub topic_items: u32,
    /// Bytes of these.
    pub topic_bytes: u64,
    /// Topics that one account may own by creating them.
    pub topics_owned: u32,
    /// Topics that one account may follow by subscribing to them.
    pub topics_followed: u32,
    /// Tasks waiting for one room.
    pub room_queue: usize,
    /// Occupants of one room.
    pub room_occupants: u32,
    /// Occupants of a room of which all are shown the presence. In a larger one only moderators are shown to all.
    pub room_presence: u32,
    /// Accounts that one room lists: members, admins, owners, and those who are banned.
    pub room_members: u32,
    /// Rooms that one account may own by creating them.
    pub rooms_owned: u32,
    /// Rooms that one session may be in, and of which one account may be made a member.
    pub rooms_joined: u32,
    /// Bytes that one presence may carry.
    pub presence_bytes: usize,
    /// Accounts a session may have sent directed presence to.
    pub directed_presence: usize,
    /// Bytes of accounts' records that are kept in memory, in all shards together.
    pub records_bytes: usize,
    /// What an account's roster may hold.
    pub roster: RosterBounds,
    /// What an account's block list may hold.
    pub block_list: BlockListBounds,
    /// Bytes of what an account's clients keep (XEP-0049).
    pub private_bytes: usize,
    /// What an account keeps in its own nodes (XEP-0163).
    pub nodes: NodeBounds,
    /// Bytes of what is known of clients by their hashes (XEP-0115).
    pub capabilities_bytes: usize,
    /// Bytes of the vCard of an account, or of a room (XEP-0054).
    pub vcard_bytes: usize,
    /// Bytes of traces kept in memory per shard.
    pub traces_bytes: usize,
    /// Domains that are counted one by one; the others are counted together.
    pub domains_counted: usize,
}

/// How fast the sessions of one account, or one connection of the light protocol, may send. Each rate may be exceeded by its burst; beyond
/// that they are read more slowly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Stanzas, and other elements that want an answer, per second; 0 for no bound.
    pub stanzas_per_second: u32,
    /// How many of these may come at once.
    pub stanzas_burst: u32,
    /// Bytes of all elements per second; 0 for no bound.
    pub bytes_per_second: u32,
    /// How many of these may come at once.
    pub bytes_burst: u32,
}

/// What an operator decides about invitations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitations {
    /// Whether there are any: then clients are offered to register by them (XEP-0445).
    pub enabled: bool,
    /// How many an account may have made that have not expired; 0 for none (XEP-0401).
    pub per_account: u32,
    /// How many a domain may have that have not expired.
    pub per_domain: u32,
    /// For how long one can be used unless it says otherwise, milliseconds.
    pub valid_ms: u64,
    /// Base URL of the pages that show them; empty for no pages.
    pub url: String,
}

impl Invitations {
    /// Where the page of an invitation is; none where there are no pages.
    pub fn page_of(&self, domain: &str, token: &str) -> Option<String> {
        let base = self.url.trim_end_matches('/');
        (!base.is_empty()).then(|| format!("{base}/invitations/{domain}/{token}"))
    }
}

impl Default for Invitations {
    fn default() -> Invitations {
        Invitations {
            enabled: false,
            per_account: 0,
            per_domain: 10_000,
            valid_ms: 7 * 86_400_000,
            url: String::new(),
        }
    }
}

/// How events of topics are delivered to their followers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fanout {
    /// Deliveries per slice of a fan-out: other work is done between two slices.
    pub slice: usize,
    /// Deliveries of one topic, or room, that may wait in one shard before more is refused.
    pub waiting_deliveries: usize,
    /// Bytes that may wait in one shard, for the followers of all topics together, and for the occupants of all rooms, before more is refused.
    pub waiting_bytes: usize,
}

/// What clients of the light protocol may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Light {
    /// The domain whose topics they may follow, prepared (RFC 7622 §3.2); empty for none.
    pub domain: Box<str>,
    /// Topics that one connection may follow.
    pub subscriptions: usize,
    /// Milliseconds without a frame from the client after which its connection is closed; 0 for never.
    pub idle_timeout_ms: u64,
}

/// Files that clients upload (XEP-0363).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    /// What the URLs of files begin with: scheme, host and port; empty where nothing is uploaded.
    pub url: String,
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Bytes of an account's files.
    pub account_bytes: u64,
    /// Bytes of the files of a domain.
    pub domain_bytes: u64,
    /// Media types of files, such as `image/png` or `audio/*`; empty for all.
    pub types: Vec<String>,
    /// For how long a client may begin to put a file into its slot, milliseconds.
    pub slot_ms: u64,
    /// For how long a file is kept, milliseconds.
    pub kept_ms: u64,
}

/// Waking apps by push services (XEP-0357).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Push {
    /// The public key by which push services know this server (RFC 8292 §3.2), in base64url. It follows from other settings.
    pub vapid: Box<str>,
    /// How long a live session may take to acknowledge what is stored before the account's apps are woken, milliseconds.
    pub grace_ms: u64,
    /// Registrations of one account.
    pub per_account_max: u32,
    /// Apps that push services of makers of devices know. They follow from other settings.
    pub apps: Vec<PushApp>,
    /// This server as a push service.
    pub service: PushService,
}

/// This server as a push service (RFC 8030), whose pushes clients distribute to applications on their devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushService {
    /// What the URLs of endpoints begin with: scheme, host, and a port and a path if there are any; empty where there are no endpoints.
    pub url: String,
    /// Endpoints of one account.
    pub per_account_max: u32,
    /// For how long an endpoint takes pushes after its client asked for it last, milliseconds.
    pub endpoint_ms: u64,
}

impl Default for PushService {
    fn default() -> PushService {
        PushService { url: String::new(), per_account_max: 100, endpoint_ms: 30 * 24 * 3_600_000 }
    }
}

/// An app that a push service of a maker of devices knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushApp {
    /// Its name.
    pub name: Box<str>,
    /// The push service.
    pub service: AppService,
    /// Domains whose accounts may use it, as prepared names; none for all.
    pub domains: Vec<Box<str>>,
}

impl Push {
    /// The app of this name, if accounts of `domain` may use it.
    pub fn app(&self, name: &str, domain: &str) -> Option<&PushApp> {
        self.apps.iter().find(|app| &*app.name == name && app.serves(domain))
    }
}

impl PushApp {
    /// Whether accounts of this domain may use it.
    pub fn serves(&self, domain: &str) -> bool {
        self.domains.is_empty() || self.domains.iter().any(|served| &**served == domain)
    }
}

impl Default for Push {
    fn default() -> Push {
        Push {
            vapid: "".into(),
            grace_ms: 10_000,
            per_account_max: 20,
            apps: Vec::new(),
            service: PushService::default(),
        }
    }
}

/// Rooms of MUC Light (`urn:xmpp:muclight:0`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MucLight {
    /// Whether members may configure a room, not only its owner.
    pub all_can_configure: bool,
    /// Whether members may add others to a room, not only its owner.
    pub all_can_invite: bool,
    /// Occupants of one room.
    pub occupants: u32,
    /// Rooms of which one account can be an occupant.
    pub rooms_per_user: u32,
    /// Rooms of a page of those that an account is in.
    pub rooms_per_page: u16,
    /// Fields of a room's configuration beside `roomname` and `subject`.
    pub fields: Vec<String>,
}

/// Privacy lists (XEP-0016), for old clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivacySettings {
    /// Whether there are any.
    pub enabled: bool,
    /// How much the lists of one account hold.
    pub bounds: PrivacyBounds,
}

impl Default for PrivacySettings {
    fn default() -> PrivacySettings {
        PrivacySettings { enabled: false, bounds: PrivacyBounds { lists: 20, rules: 100, bytes: 64 * 1024 } }
    }
}

/// What there may be of real-time matches on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matches {
    /// Matches at a time; 0 for none: then nothing of them is offered.
    pub max: usize,
    /// Queues of the matchmaker.
    pub queues: usize,
    /// Tickets, those included whose match is played.
    pub tickets: usize,
    /// Bytes of ticks that each match keeps for players who come back.
    pub log_bytes: usize,
    /// Of the matches, those that a module decides: each has an instance of it.
    pub authoritative_max: usize,
    /// For how long it is kept how a match was played that is over, in milliseconds; 0 for not at all.
    pub replay_ms: u64,
    /// Bytes of all that is kept of matches that are over.
    pub replay_bytes: usize,
}

/// How long things may take, milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// From acceptance to authentication, TLS included.
    pub auth_ms: u64,
    /// From authentication to a bound resource.
    pub bind_ms: u64,
    /// From our `</stream:stream>` to the peer's.
    pub close_ms: u64,
    /// Time without anything from a client after which the server pings it; 0 for never.
    pub ping_idle_ms: u64,
    /// How long the server then waits for anything from the client.
    pub ping_wait_ms: u64,
    /// How long a session waits for its client to resume it (XEP-0198); 0 where none is resumed.
    pub resume_ms: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            fast: fast::Settings::default(),
            mechanisms: Mechanism::ALL.to_vec(),
            scram_iterations: 4096,
            secret: [0; 32],
            features_disabled: Vec::new(),
            fanout: Fanout::default(),
            light: Light::default(),
            upload: Upload::default(),
            muclight: MucLight::default(),
            privacy_lists: PrivacySettings::default(),
            push: Push::default(),
            matches: Matches::default(),
            notification_ttl_max_ms: 30 * 86_400_000,
            removed_names_held_ms: 30 * 86_400_000,
            invitations: Invitations::default(),
            receipt_wait_ms: 2000,
        }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            stanza_bytes: 256 * 1024,
            stanza_bytes_before_auth: 16 * 1024,
            depth: 64,
            auth_attempts: 5,
            auth_failures_per_address: 50,
            auth_failures_per_account_and_address: 10,
            auth_failures_per_account: 100,
            registrations_per_address: 100,
            auth_window_ms: 300_000,
            rates: Rates::default(),
            offline_messages: 1000,
            offline_bytes: 8 << 20,
            pending_notifications: 1000,
            unacknowledged: 5000,
            unacknowledged_bytes: 4 << 20,
            all_unacknowledged_bytes: 512 << 20,
            topic_queue: 1000,
            topic_affiliations: 10_000,
            topic_items: 10_000,
            topic_bytes: 16 << 20,
            topics_owned: 100,
            room_queue: 1000,
            room_occupants: 20_000,
            room_presence: 1000,
            room_members: 20_000,
            rooms_owned: 100,
            rooms_joined: 500,
            topics_followed: 1000,
            presence_bytes: 16 * 1024,
            records_bytes: 256 * 1024 * 1024,
            block_list: BlockListBounds { addresses: 2000, bytes: 64 * 1024 },
            nodes: NodeBounds { nodes: 200, items: 1000, bytes: 4 << 20 },
            capabilities_bytes: 4 << 20,
            roster: RosterBounds { contacts: 2000, requests: 200, bytes: 256 * 1024 },
            directed_presence: 500,
            private_bytes: 64 * 1024,
            vcard_bytes: 64 * 1024,
            traces_bytes: 32 << 20,
            domains_counted: 100,
        }
    }
}

impl Default for Rates {
    fn default() -> Rates {
        Rates {
            stanzas_per_second: 200,
            stanzas_burst: 1000,
            bytes_per_second: 1 << 20,
            bytes_burst: 4 << 20,
        }
    }
}

impl Default for Fanout {
    fn default() -> Fanout {
        Fanout { slice: 64, waiting_deliveries: 1_000_000, waiting_bytes: 64 << 20 }
    }
}

impl Default for Light {
    fn default() -> Light {
        Light { domain: Box::default(), subscriptions: 100, idle_timeout_ms: 120_000 }
    }
}

impl Default for Upload {
    fn default() -> Upload {
        Upload {
            url: String::new(),
            file_bytes: 50 << 20,
            account_bytes: 500 << 20,
            domain_bytes: 100 << 30,
            types: Vec::new(),
            slot_ms: 600_000,
            kept_ms: 30 * 86_400_000,
        }
    }
}

impl Default for Matches {
    fn default() -> Matches {
        Matches {
            max: 2000,
            queues: 100,
            tickets: 50_000,
            log_bytes: 512 * 1024,
            authoritative_max: 1000,
            replay_ms: 600_000,
            replay_bytes: 16 << 20,
        }
    }
}

impl Default for MucLight {
    fn default() -> MucLight {
        MucLight {
            all_can_configure: false,
            all_can_invite: false,
            occupants: 5000,
            rooms_per_user: 1000,
            rooms_per_page: 100,
            fields: Vec::new(),
        }
    }
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts {
            auth_ms: 30_000,
            bind_ms: 30_000,
            close_ms: 5_000,
            ping_idle_ms: 60_000,
            ping_wait_ms: 30_000,
            resume_ms: 300_000,
        }
    }
}
