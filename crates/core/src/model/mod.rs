//! The nouns of the server: identifiers, domains, accounts, topics, notifications. Plain data, no behaviour
//! beyond reading and printing itself.

mod account;
mod act;
mod archive;
mod availability;
mod blocking;
mod broadcast;
mod config_change;
mod domain;
mod drain;
mod durations;
mod endpoint;
mod event;
mod game;
mod granted;
mod hop;
mod id;
mod inbox;
mod invitation;
mod key;
mod link;
mod map;
mod node;
mod node_event;
mod notification;
mod offline;
mod placement;
mod privacy;
mod pubsub_event;
mod pubsub_xml;
mod push;
mod revocation;
mod room;
mod room_presence;
mod roster;
mod rule_index;
mod settlement;
mod time;
mod topic;
mod transport;
mod upload;
mod webhook;

pub use account::{
    AccountState, Credentials, Identity, Login, LoginBacklog, LoginParts, ScramKeys, Subscription,
};
pub use act::Act;
pub use archive::{
    ArchiveBounds, ArchiveDefault, ArchiveEnds, ArchiveFilter, ArchivePreferences, ArchiveSide, ArchiveStart,
    ArchivedMessage, is_with, kept_at,
};
pub use availability::Availability;
pub use blocking::{
    BlockList, BlockListBounds, BlockListChange, BlockListEdit, PrivacyChange, UNBLOCKED_MAX, is_covered,
    is_covered_by,
};
pub use broadcast::{
    Broadcast, BroadcastEnd, BroadcastPace, BroadcastProgress, BroadcastReport, BroadcastState,
    BroadcastTopic, DayWindow,
};
pub use config_change::{ConfigChange, Fields};
pub use domain::{Domain, Domains, Policy, PubsubCreate, RoomEvents, RoomsCreate, SessionPolicy};
pub use drain::{DrainSlice, Farewell, NoHost, OtherHost};
pub use durations::Durations;
pub use endpoint::{
    Endpoint, EndpointId, EndpointKey, NoEndpointId, PushName, PushRequest, PushedMessage, SenderKey,
    UNIFIED_PUSH,
};
pub use event::{
    Event, EventFilter, EventType, EventTypes, RoomAction, RoomFact, RoomMemberFact, RoomMessageFact,
};
pub use game::{
    MatchId, MatchReplay, MatchResult, MatchRules, MatchView, NewTicket, QueueConfig, QueueView,
    RatingWindow, Seating, TicketState, TicketView, queue_address,
};
pub use hop::{Hop, HopStep, TraceContext};
pub use id::{
    AccountId, ActId, ArchiveId, ConnId, DomainId, Epoch, Generation, InvitationId, KeyId, LinkId, NodeId,
    NotificationId, OperationId, Partition, Partitions, Place, PushId, RegistrationId, Revision, RoomId,
    SessionId, ShardId, Ticket, TopicId, WebhookId, bucket,
};
pub use inbox::{
    CONVERSATIONS_COUNTED_MAX, Conversation, ConversationChange, EntryKind, Folder, InboxEntry, InboxFilter,
    InboxPlace, InboxTotals, MARKED_MAX, UNREAD_MAX, has_id, inbox_bound, named_place,
};
pub use invitation::{Invitation, TokenHash};
pub use key::{ApiKey, Scope, Scopes};
pub use link::{AgentClass, Click, Link, LinkFile, Opened};
pub use map::{Hashing, Map, Set, maps_are_seeded, seed_maps};
pub use node::{Kept, Node, NodeBounds, NodeChange, NodeEdit, NodeRefusal, page_of};
pub use node_event::{NodeEvent, Reader, Wants};
pub use notification::{
    AcknowledgedBy, Audience, DropReason, Notification, NotificationState, Payload, Priority, States, Trace,
};
pub use offline::{ExpiredMessage, OfflineMessage};
pub use placement::{
    CellEndpoints, CellKey, CellRecord, Draining, HeldRequest, MoveStep, Moving, Placement, choose,
};
pub use privacy::{
    EditedLists, Peer, PrivacyBounds, PrivacyEdit, PrivacyList, PrivacyLists, PrivacyRefusal, PrivacyRule,
    RuleAbout, StanzaKind, StanzaKinds, SubscriptionState, rules_deny,
};
pub(crate) use pubsub_event::Change;
pub use pubsub_event::{News, PubsubEvent, Retained};
pub use pubsub_xml::write_item;
pub use push::{
    AppService, AppToken, PUSH_ROOMS_MAX, Push, PushChannel, PushFailure, PushHealth, PushKind, PushOutcome,
    PushRegistration, PushSecret, PushShown, PushState, PushStep, PushSubject, PushWakes, ROOM_LISTENERS_MAX,
    Wake, WakesOn, WebPushKeys, room_of_topic, room_topic,
};
pub use revocation::{AgentId, Revocations};
pub use room::{
    AllowPm, PhotoHash, PresenceBroadcast, RoomAffiliation, RoomBlock, RoomConfig, RoomEntry, RoomHistory,
    RoomKey, RoomKind, RoomListed, RoomMember, RoomOfAccount, RoomRecord, RoomRole, RoomSubject,
    room_version,
};
pub use room_presence::RoomPresence;
pub use roster::{
    BothSides, Contact, REQUEST_BYTES_MAX, Record, RecordParts, Roster, RosterBounds, RosterChange,
    RosterUse, Side, Standing, SubscriptionAction, change_subscription, ended_with, removed_by,
};
pub use rule_index::RuleIndex;
pub use settlement::Settlement;
pub use time::{Moment, Mono, Now, UnixMs};
pub use topic::{
    Access, Affiliation, Followed, Item, ItemsFrom, Listed, PublishModel, SendLast, Shown, TOPIC_HOST,
    TopicConfig, TopicKey, TopicRecord, topic_address,
};
pub use transport::Transport;
pub use upload::{Slot, UploadAttempt, UploadBounds, UploadId, UploadKey, UploadedFile};
pub use webhook::{
    DeadLetter, DeadLetters, Webhook, WebhookFailure, WebhookProgress, WebhookSecret, WebhookStatus,
};
