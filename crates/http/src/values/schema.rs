//! The core's words and records as the OpenAPI document shows them. They are read and written as the core's own types;
//! what stands here is only their description, and a test holds the two together.

use crate::problem::Code;
use std::collections::BTreeMap;
use utoipa::openapi::schema::{ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder, Schema};
use utoipa::{PartialSchema, ToSchema};

macro_rules! words {
    ($($(#[doc = $doc:literal])+ $name:ident: $($word:literal),+;)+) => {$(
        $(#[doc = $doc])+
        pub(crate) struct $name;

        impl $name {
            /// Its words.
            pub(crate) const WORDS: &'static [&'static str] = &[$($word),+];
        }

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let doc = concat!($($doc),+).trim_ascii();
                ObjectBuilder::new()
                    .schema_type(Type::String)
                    .description(Some(doc))
                    .enum_values(Some($name::WORDS.iter().copied()))
                    .into()
            }
        }

        impl ToSchema for $name {}
    )+};
}

words! {
    /// When a notification is worth delivering: while someone uses the device, while it is connected, or always.
    Audience: "active", "connected", "always";
    /// Which of a device's waiting notifications goes first.
    Priority: "low", "normal", "high";
    /// How far a notification has come.
    NotificationState: "scheduled", "accepted", "stored", "sent", "acknowledged", "expired", "replaced", "cancelled", "dropped", "opened";
    /// Who says that the device has it: its XEP-0198 count, its XEP-0184 receipt, the server's socket, or that its link was followed.
    AcknowledgedBy: "stream-management", "receipt", "socket", "link";
    /// What kind of program followed a link.
    AgentClass: "mobile", "tablet", "desktop", "other";
    /// Why a notification was dropped.
    DropReason: "unknown-device", "not-connected", "not-active", "connection-lost", "queue-full", "device-deleted", "module";
    /// One thing an API key may do.
    Scope: "send", "broadcast", "topics", "enrol", "chat", "rooms", "links", "matches", "admin", "read_messages", "trace_payload";
    /// How the ticks of a match are made.
    MatchMode: "lockstep", "relay", "authoritative";
    /// What becomes of a match when the module that decides it fails.
    OnModuleFailure: "restore", "end";
    /// What has become of a ticket.
    TicketState: "waiting", "matched", "ended", "expired";
    /// What a broadcast does: it is given or waits for its time, its sender has paused or ended it, or its time is over.
    BroadcastState: "running", "paused", "aborted", "finished";
    /// Who may subscribe to a topic and read its items.
    Access: "open", "whitelist";
    /// Who may publish over XMPP.
    PublishModel: "publishers", "subscribers", "open";
    /// When a topic's last item is sent without being asked for.
    SendLast: "never", "on_sub", "on_sub_and_presence";
    /// What happens when an account logs in a second time: the old session ends, or both live.
    SessionPolicy: "single", "multi";
    /// Which notifications reach an account.
    Reach: "active", "asleep", "unavailable", "offline";
    /// How much of what waits a push tells.
    PushShown: "nothing", "sender", "whole";
    /// A kind of what wakes apps.
    WakesOn: "notifications", "messages", "mentions";
    /// What came of the request of a push.
    PushState: "taken", "refused", "failed", "gone";
    /// Whether a webhook's events are sent.
    WebhookStatus: "enabled", "disabled", "gone";
    /// Who may create topics over XMPP.
    PubsubCreate: "any", "admin";
    /// Who may create rooms over XMPP.
    RoomsCreate: "any", "admin";
    /// What event streams and webhooks are told of a domain's rooms.
    RoomEvents: "off", "membership", "all";
    /// What an event tells of: how a notification ended, or what happened to a room.
    EventType: "notification", "room_created", "room_destroyed", "room_members", "room_subject", "room_message", "room_moderated";
    /// What an account is to a room for good (XEP-0045 §5.2).
    Affiliation: "outcast", "none", "member", "admin", "owner";
    /// Who may send private messages to occupants of a room.
    AllowPm: "anyone", "participants", "moderators", "none";
    /// Whose presence the occupants of a room are shown.
    PresenceBroadcast: "anyone", "participants", "moderators", "none";
    /// By which protocol the occupants of a room use it: XEP-0045 or MUC Light.
    RoomKind: "muc", "muclight";
    /// What members of a room that only they may enter are given of what was said before they were: all of it, or nothing.
    RoomHistory: "all", "since_member";
}

/// How a topic behaves. In a new topic, a member that is left out has its default.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its description is used")]
pub(crate) struct TopicConfig {
    /// A name for people.
    #[schema(max_length = 256, default = "")]
    title: Option<String>,
    /// Who may subscribe and read.
    #[schema(default = "open")]
    access_model: Option<Access>,
    /// Who may publish over XMPP; a key with scope `topics` always may.
    #[schema(default = "publishers")]
    publish_model: Option<PublishModel>,
    /// How many items are kept.
    #[schema(minimum = 1, maximum = 10_000, default = 1)]
    max_items: Option<u32>,
    /// Whether items are kept.
    #[schema(default = true)]
    persist_items: Option<bool>,
    /// Whether followers are sent items with their payloads. Otherwise they are told that there is one (XEP-0060 §4.3): by its id, or where
    /// items are not kept, without one.
    #[schema(default = true)]
    deliver_payloads: Option<bool>,
    /// When the last item is sent without being asked for.
    #[schema(default = "on_sub_and_presence")]
    send_last_published_item: Option<SendLast>,
    /// Whether subscribers are told that an item was retracted.
    #[schema(default = true)]
    notify_retract: Option<bool>,
    /// Whether subscribers are told that the topic is gone.
    #[schema(default = true)]
    notify_delete: Option<bool>,
}

/// How a room behaves. In a new room, a member that is left out has its default.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its description is used")]
pub(crate) struct RoomConfig {
    /// A name for people.
    #[schema(max_length = 256, default = "")]
    title: Option<String>,
    /// What it is about.
    #[schema(max_length = 1024, default = "")]
    description: Option<String>,
    /// Whether everybody can find it.
    #[schema(default = true)]
    public: Option<bool>,
    /// Whether it stays when the last occupant has left. Rooms that clients make begin without it.
    #[schema(default = true)]
    persistent: Option<bool>,
    /// Whether only members may enter.
    #[schema(default = false)]
    members_only: Option<bool>,
    /// Whether those who enter without an affiliation may not speak until they are given voice.
    #[schema(default = false)]
    moderated: Option<bool>,
    /// Whether everyone sees the occupants' addresses; else only moderators do.
    #[schema(default = false)]
    non_anonymous: Option<bool>,
    /// The password for those who enter, or empty.
    #[schema(max_length = 256, default = "")]
    password: Option<String>,
    /// Occupants at most; 0 for as many as the node allows. Admins and owners still enter.
    #[schema(minimum = 0, default = 0)]
    max_users: Option<u32>,
    /// Whether occupants may invite; else only admins and owners.
    #[schema(default = true)]
    allow_invites: Option<bool>,
    /// Whether participants may change the subject; else only moderators.
    #[schema(default = false)]
    change_subject: Option<bool>,
    /// Who may send private messages.
    #[schema(default = "anyone")]
    allow_pm: Option<AllowPm>,
    /// Whose presence others are shown; left out where it is that of anyone.
    #[schema(default = "anyone")]
    presence_broadcast: Option<PresenceBroadcast>,
    /// Whether messages are kept in the room's archive.
    #[schema(default = true)]
    archive: Option<bool>,
    /// How many messages those who enter are given if they ask for no other number.
    #[schema(minimum = 0, maximum = 100, default = 20)]
    history: Option<u32>,
    /// Whether nobody but its owner enters until it is configured once (XEP-0045 §10.1.2).
    #[schema(default = false)]
    locked: Option<bool>,
    /// What members of a room that only they may enter are given of what was said before they were.
    #[schema(default = "all")]
    members_history: Option<RoomHistory>,
    /// The fields of a room of MUC Light beside its title: `subject`, and those of `muclight.fields`. At most 1024 bytes each.
    fields: Option<BTreeMap<String, String>>,
    /// Days for which the archive keeps a message at most; 0, for as long as the domain's policy says, is left out.
    #[schema(minimum = 0, maximum = 36_500, default = 0)]
    archive_days: Option<u32>,
}

/// What a domain allows. In a new domain, a member that is left out has its default.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its description is used")]
pub(crate) struct Policy {
    /// What happens when an account logs in a second time.
    #[schema(default = "multi")]
    sessions: Option<SessionPolicy>,
    /// In-band registration (XEP-0077).
    #[schema(default = false)]
    registration: Option<bool>,
    /// Whether accounts change their passwords and remove themselves over XMPP (XEP-0077 §3.2, §3.3).
    #[schema(default = true)]
    account_management: Option<bool>,
    /// Who may create topics over XMPP.
    #[schema(default = "any")]
    pubsub_create: Option<PubsubCreate>,
    /// Sessions one account may hold under `multi`.
    #[schema(minimum = 1, maximum = 1000, default = 20)]
    sessions_max: Option<u16>,
    /// Whether a chat message is acknowledged to its sender (XEP-0198) when it is stored or the recipient's client has acknowledged it;
    /// otherwise it is when it was routed, so that a crash can lose it.
    #[schema(default = true)]
    messages_durable: Option<bool>,
    /// How long, in milliseconds, a session whose connection is lost waits at most for its client to resume it (XEP-0198 §5); 0 where
    /// sessions end with their connections. The node's setting `resumption.timeout_ms` applies as well.
    #[schema(minimum = 0, maximum = 86_400_000, default = 86_400_000)]
    resumption_ms_max: Option<u32>,
    /// Whether the domain archives chat messages (XEP-0313); an account may opt out.
    #[schema(default = false)]
    archive: Option<bool>,
    /// Days for which an archive keeps a message; 0 for ever.
    #[schema(minimum = 0, maximum = 36_500, default = 0)]
    archive_days: Option<u32>,
    /// Messages that the archive of one account keeps, the newest; 0 for any number.
    #[schema(minimum = 0, default = 0)]
    archive_messages_max: Option<u32>,
    /// Bytes of messages that the archive of one account keeps, the newest; 0 for any number.
    #[schema(minimum = 0, default = 1_073_741_824_u64)]
    archive_bytes_max: Option<u64>,
    /// API keys that are bound to the domain.
    #[schema(minimum = 1, maximum = 10_000, default = 100)]
    keys_max: Option<u32>,
    /// Whether its accounts exchange messages, presence and requests with those of other domains that allow it, too. Otherwise other domains are to
    /// them as domains that are not served here.
    #[schema(default = false)]
    other_domains: Option<bool>,
    /// Requests per second to the HTTP APIs by all keys that are bound to the domain, to each node; 0 for any number. More are answered `429`.
    #[schema(minimum = 0, maximum = 1_000_000, default = 0)]
    requests_per_second: Option<u32>,
    /// Stanzas per second, and other elements that are answered, that the clients of the domain may send to each node together; 0 for any number. More are
    /// read more slowly.
    #[schema(minimum = 0, maximum = 1_000_000, default = 0)]
    stanzas_per_second: Option<u32>,
    /// Bytes per second that they may send to each node together; 0 for any number. More are read more slowly.
    #[schema(minimum = 0, maximum = 4_294_967_295_u32, default = 0)]
    bytes_per_second: Option<u32>,
    /// Who may create rooms over XMPP, of either kind: every account, or only API keys with the scope `rooms`.
    #[schema(default = "any")]
    rooms_create: Option<RoomsCreate>,
    /// Rooms that one account may own by creating them; 0 for any number. The node's setting `rooms.max_owned` applies as well.
    #[schema(minimum = 0, maximum = 1_000_000, default = 0)]
    rooms_owned_max: Option<u32>,
    /// Rooms of either kind that the domain may have, also by API keys; 0 for any number.
    #[schema(minimum = 0, maximum = 1_000_000, default = 0)]
    rooms_max: Option<u32>,
    /// Accounts that the domain may have, also by API keys; 0 for any number.
    #[schema(minimum = 0, maximum = 100_000_000, default = 0)]
    accounts_max: Option<u32>,
    /// Topics that the domain may have, also by API keys; 0 for any number.
    #[schema(minimum = 0, maximum = 10_000_000, default = 0)]
    topics_max: Option<u32>,
    /// Topics that one account may own by creating them; 0 for any number. The node's setting `pubsub.max_owned` applies as well.
    #[schema(minimum = 0, maximum = 10_000_000, default = 0)]
    topics_owned_max: Option<u32>,
    /// Topics that one account may be subscribed to, also by API keys; 0 for any number. The node's setting `pubsub.max_subscriptions` applies as
    /// well to what clients subscribe to.
    #[schema(minimum = 0, maximum = 10_000_000, default = 0)]
    subscriptions_max: Option<u32>,
    /// XMPP sessions that all accounts of the domain may hold on each node together; 0 for any number. Each shard of a node has an even part.
    #[schema(minimum = 0, maximum = 100_000_000, default = 0)]
    sessions_total_max: Option<u32>,
    /// Bytes per second that the clients of the domain may be sent by each node together; 0 for any number. Past it they are read more slowly, and what
    /// is published to topics is answered `429`.
    #[schema(minimum = 0, maximum = 4_294_967_295_u32, default = 0)]
    bytes_out_per_second: Option<u32>,
    /// Bytes that may be stored of the domain's accounts and topics; 0 for any number. They are measured every minute: past it nothing more is stored, which is answered `507`.
    #[schema(minimum = 0, default = 0)]
    stored_bytes_max: Option<u64>,
    /// What event streams and webhooks that ask for it are told of the domain's rooms: nothing; that they are created and destroyed, and what accounts are
    /// to them; or also what is said in those that have archives.
    #[schema(default = "off")]
    room_events: Option<RoomEvents>,
    /// Days for which archives of rooms keep a message; 0 for as long as other archives, `archive_days`. A room may keep it for a shorter time.
    #[schema(minimum = 0, maximum = 36_500, default = 0)]
    room_archive_days: Option<u32>,
}

/// What went wrong (RFC 9457), where it stands inside another answer.
pub(crate) struct Problem;

impl PartialSchema for Problem {
    fn schema() -> RefOr<Schema> {
        problem()
    }
}

impl ToSchema for Problem {}

/// The answer to whatever went wrong, for the `responses` of every route.
pub(crate) struct Problems;

impl utoipa::IntoResponses for Problems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
        let response = ResponseBuilder::new()
            .description("What went wrong, as RFC 9457 problem details")
            .content("application/problem+json", content)
            .build();
        BTreeMap::from([("default".to_owned(), response.into())])
    }
}

/// The schema of a problem.
pub(crate) fn problem() -> RefOr<Schema> {
    let text = |doc: &str| ObjectBuilder::new().schema_type(Type::String).description(Some(doc));
    let meanings: String = Code::ALL
        .iter()
        .map(|c| format!("- `{}` ({}): {}\n", c.as_str(), c.status().as_u16(), c.meaning()))
        .collect();
    ObjectBuilder::new()
        .description(Some("What went wrong (RFC 9457)."))
        .property(
            "type",
            text("`urn:carillon:problem:` and the code.").format(Some(SchemaFormat::Custom("uri".into()))),
        )
        .property(
            "code",
            text(&format!("What went wrong, as a word that keeps its meaning.\n\n{meanings}"))
                .enum_values(Some(Code::ALL.iter().map(|c| c.as_str()))),
        )
        .property("title", text("The same for every problem of this code."))
        .property(
            "status",
            ObjectBuilder::new().schema_type(Type::Integer).description(Some("The HTTP status.")),
        )
        .property("detail", text("What is wrong with this very request."))
        .property("pointer", text("The member of the body it is about, as a JSON pointer (RFC 6901)."))
        .property("request_id", text("The id of the request, as in the header `X-Request-Id` of the response and in the node's log."))
        .property("reason", text("Why a message was refused, for a key that reaches the other's domain: `unknown-account`, `blocked`."))
        .property("state", text("How far the notification has come, where the problem is about one."))
        .required("type")
        .required("code")
        .required("title")
        .required("status")
        .required("detail")
        .into()
}
