package carillon

import (
	"encoding/json"
	"time"
)

// Targets is who is to have a notification, each as a bare JID or as a local part of the domain. With one of them a refusal is an
// [APIError]; with more, each has a result of its own.
type Targets []string

// MarshalJSON writes one target as itself.
func (t Targets) MarshalJSON() ([]byte, error) {
	if len(t) == 1 {
		return json.Marshal(t[0])
	}
	return json.Marshal([]string(t))
}

// Patch is what to change, by the names of the members. What is nil gets its default; what is left out stays as it is.
type Patch map[string]any

// Access is a word of the node's OpenAPI document: who may subscribe to a topic and read its items.
type Access string

// The values of Access.
const (
	AccessOpen      Access = "open"
	AccessWhitelist Access = "whitelist"
)

// AcknowledgedBy is a word of the node's OpenAPI document: who says that the device has it: its XEP-0198 count, its
// XEP-0184 receipt, the server's socket, or that its link was followed.
type AcknowledgedBy string

// The values of AcknowledgedBy.
const (
	AcknowledgedByStreamManagement AcknowledgedBy = "stream-management"
	AcknowledgedByReceipt          AcknowledgedBy = "receipt"
	AcknowledgedBySocket           AcknowledgedBy = "socket"
	AcknowledgedByLink             AcknowledgedBy = "link"
)

// Affiliation is a word of the node's OpenAPI document: what an account is to a room for good.
type Affiliation string

// The values of Affiliation.
const (
	AffiliationOutcast Affiliation = "outcast"
	AffiliationNone    Affiliation = "none"
	AffiliationMember  Affiliation = "member"
	AffiliationAdmin   Affiliation = "admin"
	AffiliationOwner   Affiliation = "owner"
)

// AgentClass is a word of the node's OpenAPI document: what kind of program followed a link.
type AgentClass string

// The values of AgentClass.
const (
	AgentClassMobile  AgentClass = "mobile"
	AgentClassTablet  AgentClass = "tablet"
	AgentClassDesktop AgentClass = "desktop"
	AgentClassOther   AgentClass = "other"
)

// Audience is a word of the node's OpenAPI document: when a notification is worth delivering: while someone uses the
// device, while it is connected, or always.
type Audience string

// The values of Audience.
const (
	AudienceActive    Audience = "active"
	AudienceConnected Audience = "connected"
	AudienceAlways    Audience = "always"
)

// DropReason is a word of the node's OpenAPI document: why a notification was dropped.
type DropReason string

// The values of DropReason.
const (
	DropReasonUnknownDevice  DropReason = "unknown-device"
	DropReasonNotConnected   DropReason = "not-connected"
	DropReasonNotActive      DropReason = "not-active"
	DropReasonConnectionLost DropReason = "connection-lost"
	DropReasonQueueFull      DropReason = "queue-full"
	DropReasonDeviceDeleted  DropReason = "device-deleted"
	DropReasonModule         DropReason = "module"
)

// EventType is a word of the node's OpenAPI document: how a notification ended, or what happened to a room.
type EventType string

// The values of EventType.
const (
	EventTypeNotification  EventType = "notification"
	EventTypeRoomCreated   EventType = "room_created"
	EventTypeRoomDestroyed EventType = "room_destroyed"
	EventTypeRoomMembers   EventType = "room_members"
	EventTypeRoomSubject   EventType = "room_subject"
	EventTypeRoomMessage   EventType = "room_message"
	EventTypeRoomModerated EventType = "room_moderated"
)

// NotificationState is a word of the node's OpenAPI document: how far a notification has come.
type NotificationState string

// The values of NotificationState.
const (
	NotificationStateScheduled    NotificationState = "scheduled"
	NotificationStateAccepted     NotificationState = "accepted"
	NotificationStateStored       NotificationState = "stored"
	NotificationStateSent         NotificationState = "sent"
	NotificationStateAcknowledged NotificationState = "acknowledged"
	NotificationStateExpired      NotificationState = "expired"
	NotificationStateReplaced     NotificationState = "replaced"
	NotificationStateCancelled    NotificationState = "cancelled"
	NotificationStateDropped      NotificationState = "dropped"
	NotificationStateOpened       NotificationState = "opened"
)

// Priority is a word of the node's OpenAPI document: which of a device's waiting notifications goes first.
type Priority string

// The values of Priority.
const (
	PriorityLow    Priority = "low"
	PriorityNormal Priority = "normal"
	PriorityHigh   Priority = "high"
)

// PublishModel is a word of the node's OpenAPI document: who may publish over XMPP.
type PublishModel string

// The values of PublishModel.
const (
	PublishModelPublishers  PublishModel = "publishers"
	PublishModelSubscribers PublishModel = "subscribers"
	PublishModelOpen        PublishModel = "open"
)

// PushState is a word of the node's OpenAPI document: what came of the request of a push.
type PushState string

// The values of PushState.
const (
	PushStateTaken   PushState = "taken"
	PushStateRefused PushState = "refused"
	PushStateFailed  PushState = "failed"
	PushStateGone    PushState = "gone"
)

// Reach is a word of the node's OpenAPI document: which notifications reach an account.
type Reach string

// The values of Reach.
const (
	ReachActive      Reach = "active"
	ReachAsleep      Reach = "asleep"
	ReachUnavailable Reach = "unavailable"
	ReachOffline     Reach = "offline"
)

// Scope is a word of the node's OpenAPI document: one thing an API key may do.
type Scope string

// The values of Scope.
const (
	ScopeSend         Scope = "send"
	ScopeBroadcast    Scope = "broadcast"
	ScopeTopics       Scope = "topics"
	ScopeEnrol        Scope = "enrol"
	ScopeChat         Scope = "chat"
	ScopeRooms        Scope = "rooms"
	ScopeLinks        Scope = "links"
	ScopeMatches      Scope = "matches"
	ScopeAdmin        Scope = "admin"
	ScopeReadMessages Scope = "read_messages"
	ScopeTracePayload Scope = "trace_payload"
)

// SendLast is a word of the node's OpenAPI document: when a topic's last item is sent without being asked for.
type SendLast string

// The values of SendLast.
const (
	SendLastNever            SendLast = "never"
	SendLastOnSub            SendLast = "on_sub"
	SendLastOnSubAndPresence SendLast = "on_sub_and_presence"
)

// Problem is what went wrong (RFC 9457).
type Problem struct {
	// `urn:carillon:problem:` and the code.
	Type string `json:"type"`
	// What went wrong, as a word that keeps its meaning: what to decide by.
	Code string `json:"code"`
	// The same for every problem of this code.
	Title string `json:"title"`
	// The HTTP status.
	Status int64 `json:"status"`
	// What is wrong with this very request.
	Detail string `json:"detail"`
	// The member of the body it is about, as a JSON pointer (RFC 6901).
	Pointer string `json:"pointer,omitzero"`
	// The id of the request, as in the header `X-Request-Id` of the response and in the node's log.
	RequestID string `json:"request_id,omitzero"`
	// Why a message was refused, for a key that reaches the other's domain: `unknown-account`, `blocked`.
	Reason string `json:"reason,omitzero"`
	// How far the notification has come, where the problem is about one.
	State string `json:"state,omitzero"`
}

// NotificationBody is a notification to be sent.
type NotificationBody struct {
	// Who is to have it: one device or a list of them, each as a bare JID or as a local part of the domain.
	To Targets `json:"to"`
	// When it is worth delivering: `active` while someone uses the device, `connected` also while it sleeps, `always` also
	// kept for when it returns.
	Audience Audience `json:"audience,omitzero"`
	// How long it may wait, in seconds from its acceptance or from `send_at`. A longer time than the maximum, which the node's
	// setting `notifications.ttl_max_ms` gives, is refused. By default what is left of the maximum.
	TTL int64 `json:"ttl,omitzero"`
	// Which of a device's waiting notifications goes first.
	Priority Priority `json:"priority,omitzero"`
	// A newer notification with the same key replaces an undelivered older one.
	CollapseKey string `json:"collapse_key,omitzero"`
	// What it carries: any JSON value.
	Payload any `json:"payload,omitzero"`
	// What it carries instead: one XML element in a namespace of its own.
	PayloadXML string `json:"payload_xml,omitzero"`
	// A URL that is shortened for each target: the member `link` of what it carries, which has to be a JSON object or nothing
	// then. Who follows it has opened the notification. Takes scope `links`, and a notification that is kept: `audience`
	// `always`, or `send_at`.
	Link string `json:"link,omitzero"`
	// When it is to be sent: at the latest `notifications.ttl_max_ms` from now. At once by default. A time in the past is
	// refused, unless it is less than 60 seconds ago: then it means at once.
	SendAt time.Time `json:"send_at,omitzero"`
	// Check everything, also that the devices are there, and send nothing.
	DryRun bool `json:"dry_run,omitzero"`
	// IdempotencyKey makes it safe to send this again within 24 hours, also from another process. One is made where it is empty.
	IdempotencyKey string `json:"-"`
}

// SendResult is what became of a notification to one target: `id` and `state`, or `error`.
type SendResult struct {
	// The target: as a bare JID, or as the request names it where it cannot be read.
	To string `json:"to"`
	// The notification's id; none where nothing was sent.
	ID string `json:"id,omitzero"`
	// How far it has come; none where it was refused.
	State NotificationState `json:"state,omitzero"`
	// Why it was dropped.
	Reason DropReason `json:"reason,omitzero"`
	// Why it was refused.
	Error *Problem `json:"error,omitzero"`
}

// SendResponse is what became of a request to send. With one target, its members are here, too.
type SendResponse struct {
	// What became of each target, in the order of the request.
	Results []SendResult `json:"results"`
	// With one target: the same as in `results`.
	To string `json:"to,omitzero"`
	// With one target: the notification's id.
	ID string `json:"id,omitzero"`
	// With one target: how far it has come.
	State NotificationState `json:"state,omitzero"`
	// With one target: why it was dropped.
	Reason DropReason `json:"reason,omitzero"`
	// Whether this was only a rehearsal.
	DryRun bool `json:"dry_run,omitzero"`
}

// BatchLine is what became of a notification among many.
type BatchLine struct {
	// The line's number, counted from 1.
	Line int64 `json:"line"`
	// The target: as a bare JID, or as the request names it where it cannot be read.
	To string `json:"to,omitzero"`
	// The notification's id; none where nothing was sent.
	ID string `json:"id,omitzero"`
	// How far it has come; none where it was refused.
	State NotificationState `json:"state,omitzero"`
	// Why it was dropped.
	Reason DropReason `json:"reason,omitzero"`
	// Why it was refused.
	Error *Problem `json:"error,omitzero"`
}

// NotificationView is what became of a notification: its trace.
type NotificationView struct {
	// Its id.
	ID string `json:"id"`
	// Its target, as a bare JID.
	To string `json:"to"`
	// When it was worth delivering.
	Audience Audience `json:"audience"`
	// Those of higher priority are delivered first.
	Priority Priority `json:"priority"`
	// Its state.
	State NotificationState `json:"state"`
	// When it was taken from its sender.
	AcceptedAt time.Time `json:"accepted_at"`
	// When it stops, or stopped, being worth delivering.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	// A newer notification with the same key replaces it while it is undelivered.
	CollapseKey string `json:"collapse_key,omitzero"`
	// The number of the API key that sent it.
	Key int64 `json:"key,omitzero"`
	// When it was, or is to be, due.
	SendAt time.Time `json:"send_at,omitzero"`
	// When it was committed to the store.
	StoredAt time.Time `json:"stored_at,omitzero"`
	// When a connection last took it.
	SentAt time.Time `json:"sent_at,omitzero"`
	// When it was acknowledged.
	AcknowledgedAt time.Time `json:"acknowledged_at,omitzero"`
	// When it reached its last state.
	EndedAt time.Time `json:"ended_at,omitzero"`
	// Who says that the device has it.
	AcknowledgedBy AcknowledgedBy `json:"acknowledged_by,omitzero"`
	// Why it was dropped.
	Reason DropReason `json:"reason,omitzero"`
	// When its link was followed, for the first time.
	OpenedAt time.Time `json:"opened_at,omitzero"`
	// What its link was followed with.
	OpenedBy AgentClass `json:"opened_by,omitzero"`
	// The pushes that told of it, where one notification is read: one for each registration that was sent any.
	Pushes []PushView `json:"pushes,omitzero"`
}

// PushView is the pushes of a notification to one registration: the last request, and how many there were.
type PushView struct {
	// The number of the registration, which may have ended since.
	Registration int64 `json:"registration"`
	// The name that its app gave it.
	Node string `json:"node"`
	// How the push got there: web_push, apns, fcm or webhook.
	Channel string `json:"channel"`
	// What came of it.
	State PushState `json:"state"`
	// Why it was not taken.
	Reason string `json:"reason,omitzero"`
	// Requests that were made.
	Requests int64 `json:"requests"`
	// When the last of them was sent.
	SentAt time.Time `json:"sent_at"`
	// When it was answered, or found to have failed.
	AnsweredAt time.Time `json:"answered_at"`
}

// RoomEventView is something that happened to a room. Which members it has besides the first three follows from its type.
type RoomEventView struct {
	// What happened.
	Type EventType `json:"type"`
	// The address of the room.
	Room string `json:"room"`
	// When.
	At time.Time `json:"at"`
	// The account that did it. An API key has none, and nobody destroys a room that all have left.
	By string `json:"by,omitzero"`
	// Why the room was destroyed.
	Reason string `json:"reason,omitzero"`
	// What accounts are to the room now: at most 100. A change of more makes several events.
	Members []RoomMemberChangeView `json:"members,omitzero"`
	// The message that was kept, or moderated.
	Message *RoomMessageEventView `json:"message,omitzero"`
	// The subject as it is now, empty for none; where contents are told.
	Subject *string `json:"subject,omitzero"`
}

// RoomMemberChangeView is an account that is something else to a room.
type RoomMemberChangeView struct {
	// The account.
	Account string `json:"account"`
	// What it was.
	Was Affiliation `json:"was"`
	// What it is: none for who was removed.
	Affiliation Affiliation `json:"affiliation"`
}

// RoomMessageEventView is a message of a room.
type RoomMessageEventView struct {
	// Its number in the room's archive.
	ArchiveID int64 `json:"archive_id"`
	// The id that its sender gave it.
	ID string `json:"id,omitzero"`
	// The address in the room of whoever said it: that of the room, and a nick.
	From string `json:"from,omitzero"`
	// The nick of whoever said it.
	Nick string `json:"nick,omitzero"`
	// Its text, if it has one; where contents are told.
	Body string `json:"body,omitzero"`
}

// PresenceView is what an account is now.
type PresenceView struct {
	// Its bare JID; as the request names it where it cannot be read.
	JID string `json:"jid"`
	// Whether it has a session.
	Online bool `json:"online,omitzero"`
	// Which notifications reach it. `active`: all. `asleep`: all but those for the audience `active`. `unavailable`: it is
	// connected, and none reaches it before it sends presence. `offline`: it has no session.
	State Reach `json:"state,omitzero"`
	// How many sessions it has.
	Sessions int64 `json:"sessions,omitzero"`
	// When the oldest of its sessions was bound. Not known of an account that is offline.
	Since time.Time `json:"since,omitzero"`
	// Why it cannot be looked up.
	Error *Problem `json:"error,omitzero"`
}

// TopicConfig is how a topic behaves. What is left out has its default; in a change, it stays as it is.
type TopicConfig struct {
	// A name for people.
	Title *string `json:"title,omitzero"`
	// Who may subscribe and read.
	AccessModel *Access `json:"access_model,omitzero"`
	// Who may publish over XMPP; a key with scope `topics` always may.
	PublishModel *PublishModel `json:"publish_model,omitzero"`
	// How many items are kept.
	MaxItems *int64 `json:"max_items,omitzero"`
	// Whether items are kept.
	PersistItems *bool `json:"persist_items,omitzero"`
	// Whether followers are sent items with their payloads. Otherwise they are told that there is one (XEP-0060 §4.3): by its
	// id, or where items are not kept, without one.
	DeliverPayloads *bool `json:"deliver_payloads,omitzero"`
	// When the last item is sent without being asked for.
	SendLastPublishedItem *SendLast `json:"send_last_published_item,omitzero"`
	// Whether subscribers are told that an item was retracted.
	NotifyRetract *bool `json:"notify_retract,omitzero"`
	// Whether subscribers are told that the topic is gone.
	NotifyDelete *bool `json:"notify_delete,omitzero"`
}

// FiguresView is what was counted of a topic.
type FiguresView struct {
	// How many sessions follow it now, also those of clients without an account.
	Sessions int64 `json:"sessions"`
	// How many items were published on it since the node started.
	Published int64 `json:"published"`
	// How many times an item of it was given to a connection since the node started.
	Delivered int64 `json:"delivered"`
	// How many accounts follow it. Not in lists.
	Subscribers int64 `json:"subscribers,omitzero"`
}

// TopicView is a topic.
type TopicView struct {
	// Its name.
	Name string `json:"name"`
	// Its domain.
	Domain string `json:"domain"`
	// When it was created.
	CreatedAt time.Time `json:"created_at"`
	// Its configuration.
	Config TopicConfig `json:"config"`
	// How accounts stand to it (XEP-0060 §4.1), by bare JID.
	Affiliations map[string]string `json:"affiliations,omitzero"`
	// What was counted of it. Not in the answer to a change.
	Figures *FiguresView `json:"figures,omitzero"`
}

// ItemBody is an item to be published.
type ItemBody struct {
	// Its id, unique in the topic: an item of the same id is replaced. The server makes one where none is given.
	ID string `json:"id,omitzero"`
	// What it carries: any JSON value.
	Payload any `json:"payload,omitzero"`
	// What it carries instead: one XML element in a namespace of its own.
	PayloadXML string `json:"payload_xml,omitzero"`
	// IdempotencyKey makes it safe to send this again within 24 hours, also from another process. One is made where it is empty.
	IdempotencyKey string `json:"-"`
}

// ItemView is an item that a topic keeps.
type ItemView struct {
	// Its id.
	ID string `json:"id"`
	// When the server accepted it.
	PublishedAt time.Time `json:"published_at"`
	// The account that published it; none when it came by HTTP.
	Publisher string `json:"publisher,omitzero"`
	// What it carries, if that is JSON.
	Payload json.RawMessage `json:"payload,omitzero"`
	// What it carries, if that is XML.
	PayloadXML string `json:"payload_xml,omitzero"`
}

// Published is an item that was published.
type Published struct {
	// Its id.
	ID string `json:"id"`
	// When the server accepted it.
	PublishedAt time.Time `json:"published_at"`
}

// DeviceView is a device.
type DeviceView struct {
	// Its id.
	ID string `json:"id"`
	// Its bare JID.
	JID string `json:"jid"`
	// `enabled` or `disabled`.
	State string `json:"state"`
	// When it was enrolled.
	CreatedAt time.Time `json:"created_at"`
	// How many notifications wait for it.
	Pending int64 `json:"pending"`
	// When it was disabled.
	DisabledAt time.Time `json:"disabled_at,omitzero"`
	// How many sessions it has now; not in lists.
	Sessions int64 `json:"sessions,omitzero"`
	// The topics it follows; not in lists.
	Topics []string `json:"topics,omitzero"`
}

// Endpoints is where devices connect to.
type Endpoints struct {
	// Host name for TCP; the domain's own name where none is set.
	Host string `json:"host,omitzero"`
	// Port for XMPP over TCP with STARTTLS.
	C2SPort int64 `json:"c2s_port,omitzero"`
	// Port for XMPP over direct TLS (XEP-0368).
	C2STLSPort int64 `json:"c2s_tls_port,omitzero"`
	// URL for XMPP over WebSocket (RFC 7395).
	WebsocketURL string `json:"websocket_url,omitzero"`
}

// Enrolled is a device that was enrolled. Its secret is shown now and never again.
type Enrolled struct {
	// Its id.
	ID string `json:"id"`
	// Its bare JID.
	JID string `json:"jid"`
	// Its secret: shown now and never again.
	Secret string `json:"secret"`
	// Addresses to connect to.
	Endpoints Endpoints `json:"endpoints"`
}

// EndpointView is where a device connects.
type EndpointView struct {
	// The device's id.
	ID string `json:"id"`
	// Its bare JID.
	JID string `json:"jid"`
	// The cell that it is in, at a front.
	Cell string `json:"cell,omitzero"`
	// Whether it is moving to another cell.
	Moving bool `json:"moving,omitzero"`
	// Addresses to connect to.
	Endpoints Endpoints `json:"endpoints"`
}

// Rotated is a device's new secret, shown now and never again.
type Rotated struct {
	// The device's id.
	ID string `json:"id"`
	// Its bare JID.
	JID string `json:"jid"`
	// Its new secret: shown now and never again.
	Secret string `json:"secret"`
	// How many of its sessions ended.
	SessionsEnded int64 `json:"sessions_ended"`
}

// Validated is whether a device could log in.
type Validated struct {
	// Whether the secret is the device's, and the device is enabled.
	Valid bool `json:"valid"`
	// Addresses to connect to.
	Endpoints Endpoints `json:"endpoints"`
}

// SubscriptionView is a subscription.
type SubscriptionView struct {
	// The topic's name.
	Topic string `json:"topic"`
	// The device's bare JID.
	JID string `json:"jid"`
}

// LinkBody is a link to be made.
type LinkBody struct {
	// Where it is to lead: an `http` or `https` URL, or one of a scheme in `links.app_schemes`.
	URL string `json:"url"`
	// Its code: letters, digits, `-` and `_`. Left out: 8 characters, the same for the same URL.
	Code string `json:"code,omitzero"`
	// When it stops leading anywhere. Left out: never.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	// Whether its URL may be changed later. Browsers do not remember such a link: it is answered with 307 instead of 308.
	MayChange bool `json:"may_change,omitzero"`
}

// LinkView is a short link.
type LinkView struct {
	// Its code.
	Code string `json:"code"`
	// The short URL.
	ShortURL string `json:"short_url"`
	// Where it leads, in its normal form.
	URL string `json:"url"`
	// Whether its URL may be changed.
	MayChange bool `json:"may_change"`
	// When it was made.
	CreatedAt time.Time `json:"created_at"`
	// How often it was followed, some seconds ago at the latest.
	Clicks int64 `json:"clicks"`
	// When it stops, or stopped, leading anywhere; none where it never does.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	// Since when it is taken down; none where it is not.
	RemovedAt time.Time `json:"removed_at,omitzero"`
	// The number of the API key that made it; none where somebody without a key did.
	Key int64 `json:"key,omitzero"`
	// When it was followed last.
	LastClickAt time.Time `json:"last_click_at,omitzero"`
}

// InvitationBody is an invitation to be made.
type InvitationBody struct {
	// The local part of the account that invites: whoever uses the invitation becomes its contact. Left out: nobody in particular.
	Inviter string `json:"inviter,omitzero"`
	// The only local part that can be registered with it. Left out: any.
	Localpart string `json:"localpart,omitzero"`
	// How often it can be used.
	Uses int64 `json:"uses,omitzero"`
	// When it expires, within a year. Left out: after `invitations.valid_ms`.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	// Whether an account can be registered with it. Otherwise it is for people who have one: their clients ask the inviter,
	// and it may accept.
	Registers *bool `json:"registers,omitzero"`
}

// InvitationView is an invitation, without its token.
type InvitationView struct {
	// Its number.
	ID int64 `json:"id"`
	// Whether an account can be registered with it.
	Registers bool `json:"registers"`
	// How often it can be used.
	UsesMax int64 `json:"uses_max"`
	// How often it was used.
	Uses int64 `json:"uses"`
	// When it was made.
	CreatedAt time.Time `json:"created_at"`
	// When it expires, or since when it is expired.
	ExpiresAt time.Time `json:"expires_at"`
	// The local part of the account that invites; none for nobody in particular.
	Inviter string `json:"inviter,omitzero"`
	// The only local part that can be registered with it; none for any.
	Localpart string `json:"localpart,omitzero"`
}

// InvitationCreated is a new invitation. Its token is shown now and never again.
type InvitationCreated struct {
	// Its number.
	ID int64 `json:"id"`
	// Whether an account can be registered with it.
	Registers bool `json:"registers"`
	// How often it can be used.
	UsesMax int64 `json:"uses_max"`
	// How often it was used.
	Uses int64 `json:"uses"`
	// When it was made.
	CreatedAt time.Time `json:"created_at"`
	// When it expires, or since when it is expired.
	ExpiresAt time.Time `json:"expires_at"`
	// The local part of the account that invites; none for nobody in particular.
	Inviter string `json:"inviter,omitzero"`
	// The only local part that can be registered with it; none for any.
	Localpart string `json:"localpart,omitzero"`
	// Its token: shown now and never again.
	Token string `json:"token"`
	// The URI that XMPP clients open (XEP-0445, XEP-0379).
	URI string `json:"uri"`
	// The page that shows it; none where `invitations.url` is empty.
	LandingURL string `json:"landing_url,omitzero"`
}

// OwnKey is the API key of the client, and where it acts.
type OwnKey struct {
	// Its number.
	ID int64 `json:"id"`
	// Its name.
	Name string `json:"name"`
	// Its scopes.
	Scopes []Scope `json:"scopes"`
	// When it was made.
	CreatedAt time.Time `json:"created_at"`
	// The domain it acts in when a request names none.
	DefaultDomain string `json:"default_domain"`
	// The domain it is bound to; none for the whole node.
	Domain string `json:"domain,omitzero"`
	// When it expires, or since when it is expired; none where it never does.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	// The networks from which it may be used; empty for any.
	Networks []string `json:"networks"`
	// The names of certificates to which it is bound; empty for any client.
	Certificates []string `json:"certificates"`
	// When it was last used, to an hour; none if it was not since the node notes that.
	UsedAt time.Time `json:"used_at,omitzero"`
}
