"""What requests and answers are made of, by the names of the node's OpenAPI document.

They are dictionaries: a member that a newer node adds is there, though its type is not. Times in answers are text (RFC 3339, UTC).
"""

from datetime import datetime
from typing import Any, Literal, NotRequired, TypedDict

Access = Literal["open", "whitelist"]
AcknowledgedBy = Literal["stream-management", "receipt", "socket", "link"]
Affiliation = Literal["outcast", "none", "member", "admin", "owner"]
AgentClass = Literal["mobile", "tablet", "desktop", "other"]
Audience = Literal["active", "connected", "always"]
DropReason = Literal[
    "unknown-device", "not-connected", "not-active", "connection-lost", "queue-full", "device-deleted", "module"
]
EventType = Literal[
    "notification",
    "room_created",
    "room_destroyed",
    "room_members",
    "room_subject",
    "room_message",
    "room_moderated",
]
NotificationState = Literal[
    "scheduled", "accepted", "stored", "sent", "acknowledged", "expired", "replaced", "cancelled", "dropped", "opened"
]
Priority = Literal["low", "normal", "high"]
PublishModel = Literal["publishers", "subscribers", "open"]
PushState = Literal["taken", "refused", "failed", "gone"]
Reach = Literal["active", "asleep", "unavailable", "offline"]
Scope = Literal[
    "send",
    "broadcast",
    "topics",
    "enrol",
    "chat",
    "rooms",
    "links",
    "matches",
    "admin",
    "read_messages",
    "trace_payload",
]
SendLast = Literal["never", "on_sub", "on_sub_and_presence"]

Time = str | datetime
"""A time in a request. A `datetime` needs a time zone."""


class Problem(TypedDict):
    """What went wrong (RFC 9457)."""

    type: str
    code: str
    title: str
    status: int
    detail: str
    pointer: NotRequired[str]
    request_id: NotRequired[str]
    reason: NotRequired[str]
    state: NotRequired[str]


class NotificationOptions(TypedDict, total=False):
    """A notification to be sent, but for its target."""

    audience: Audience
    ttl: int | None
    priority: Priority
    collapse_key: str | None
    payload: Any
    payload_xml: str | None
    link: str | None
    send_at: Time | None
    dry_run: bool


class NotificationBody(NotificationOptions):
    """A notification to be sent."""

    to: str | list[str]


class SendResult(TypedDict):
    """What became of a notification to one target: `id` and `state`, or `error`."""

    to: str
    id: NotRequired[str | None]
    state: NotRequired[NotificationState | None]
    reason: NotRequired[DropReason | None]
    error: NotRequired[Problem | None]


class SendResponse(TypedDict):
    """What became of a request to send. With one target, its members are here, too."""

    results: list[SendResult]
    to: NotRequired[str | None]
    id: NotRequired[str | None]
    state: NotRequired[NotificationState | None]
    reason: NotRequired[DropReason | None]
    dry_run: NotRequired[bool]


class BatchLine(TypedDict):
    """What became of a notification among many."""

    line: int
    to: NotRequired[str]
    id: NotRequired[str | None]
    state: NotRequired[NotificationState | None]
    reason: NotRequired[DropReason | None]
    error: NotRequired[Problem | None]


class PushView(TypedDict):
    """The pushes of a notification to one registration: the last request, and how many there were."""

    registration: int
    node: str
    channel: str
    state: PushState
    reason: NotRequired[str | None]
    requests: int
    sent_at: str
    answered_at: str


class NotificationView(TypedDict):
    """What became of a notification: its trace."""

    id: str
    to: str
    audience: Audience
    priority: Priority
    state: NotificationState
    accepted_at: str
    expires_at: NotRequired[str | None]
    collapse_key: NotRequired[str | None]
    key: NotRequired[int | None]
    send_at: NotRequired[str | None]
    stored_at: NotRequired[str | None]
    sent_at: NotRequired[str | None]
    acknowledged_at: NotRequired[str | None]
    ended_at: NotRequired[str | None]
    acknowledged_by: NotRequired[AcknowledgedBy | None]
    reason: NotRequired[DropReason | None]
    opened_at: NotRequired[str | None]
    opened_by: NotRequired[AgentClass | None]
    pushes: NotRequired[list[PushView]]


class RoomMemberChangeView(TypedDict):
    """An account that is something else to a room."""

    account: str
    was: Affiliation
    affiliation: Affiliation


# `from` is a word of Python's.
RoomMessageEventView = TypedDict(
    "RoomMessageEventView",
    {
        "archive_id": int,
        "id": NotRequired[str | None],
        "from": NotRequired[str | None],
        "nick": NotRequired[str | None],
        "body": NotRequired[str | None],
    },
)


class RoomEventView(TypedDict):
    """Something that happened to a room. Which members it has besides the first three follows from its type."""

    type: EventType
    room: str
    at: str
    by: NotRequired[str | None]
    reason: NotRequired[str | None]
    members: NotRequired[list[RoomMemberChangeView] | None]
    message: NotRequired[RoomMessageEventView | None]
    subject: NotRequired[str | None]


class PresenceView(TypedDict):
    """What an account is now."""

    jid: str
    online: NotRequired[bool | None]
    state: NotRequired[Reach | None]
    sessions: NotRequired[int | None]
    since: NotRequired[str | None]
    error: NotRequired[Problem | None]


class TopicConfig(TypedDict, total=False):
    """How a topic behaves. What is left out has its default; in a change, it stays as it is."""

    title: str | None
    access_model: Access | None
    publish_model: PublishModel | None
    max_items: int | None
    persist_items: bool | None
    deliver_payloads: bool | None
    send_last_published_item: SendLast | None
    notify_retract: bool | None
    notify_delete: bool | None


class FiguresView(TypedDict):
    """What was counted of a topic."""

    sessions: int
    published: int
    delivered: int
    subscribers: NotRequired[int | None]


class TopicView(TypedDict):
    """A topic."""

    name: str
    domain: str
    created_at: str
    config: TopicConfig
    affiliations: NotRequired[dict[str, str]]
    figures: NotRequired[FiguresView | None]


class ItemBody(TypedDict, total=False):
    """An item to be published."""

    id: str | None
    payload: Any
    payload_xml: str | None


class ItemView(TypedDict):
    """An item that a topic keeps."""

    id: str
    published_at: str
    publisher: NotRequired[str | None]
    payload: NotRequired[Any]
    payload_xml: NotRequired[str | None]


class Published(TypedDict):
    """An item that was published."""

    id: str
    published_at: str


class DeviceView(TypedDict):
    """A device."""

    id: str
    jid: str
    state: str
    created_at: str
    pending: int
    disabled_at: NotRequired[str | None]
    sessions: NotRequired[int | None]
    topics: NotRequired[list[str] | None]


class Endpoints(TypedDict, total=False):
    """Where devices connect to."""

    host: str | None
    c2s_port: int | None
    c2s_tls_port: int | None
    websocket_url: str | None


class Enrolled(TypedDict):
    """A device that was enrolled. Its secret is shown now and never again."""

    id: str
    jid: str
    secret: str
    endpoints: Endpoints


class EndpointView(TypedDict):
    """Where a device connects."""

    id: str
    jid: str
    cell: NotRequired[str]
    moving: NotRequired[bool]
    endpoints: Endpoints


class Rotated(TypedDict):
    """A device's new secret, shown now and never again."""

    id: str
    jid: str
    secret: str
    sessions_ended: int


class Validated(TypedDict):
    """Whether a device could log in."""

    valid: bool
    endpoints: Endpoints


class SubscriptionView(TypedDict):
    """A subscription."""

    topic: str
    jid: str


class LinkOptions(TypedDict, total=False):
    """A link to be made, but for its URL."""

    code: str | None
    expires_at: Time | None
    may_change: bool | None


class LinkBody(LinkOptions):
    """A link to be made."""

    url: str


class LinkChange(TypedDict, total=False):
    """What is to be changed of a link."""

    url: str | None
    expires_at: Time | None
    removed: bool | None


class LinkView(TypedDict):
    """A short link."""

    code: str
    short_url: str
    url: str
    may_change: bool
    created_at: str
    clicks: int
    expires_at: NotRequired[str | None]
    removed_at: NotRequired[str | None]
    key: NotRequired[int | None]
    last_click_at: NotRequired[str | None]


class InvitationBody(TypedDict, total=False):
    """An invitation to be made."""

    inviter: str | None
    localpart: str | None
    uses: int
    expires_at: Time | None
    registers: bool


class InvitationView(TypedDict):
    """An invitation, without its token."""

    id: int
    registers: bool
    uses_max: int
    uses: int
    created_at: str
    expires_at: str
    inviter: NotRequired[str | None]
    localpart: NotRequired[str | None]


class InvitationCreated(InvitationView):
    """A new invitation. Its token is shown now and never again."""

    token: str
    uri: str
    landing_url: NotRequired[str | None]


class OwnKey(TypedDict):
    """The API key of the client, and where it acts."""

    id: int
    name: str
    scopes: list[Scope]
    created_at: str
    default_domain: str
    networks: list[str]
    certificates: list[str]
    domain: NotRequired[str | None]
    expires_at: NotRequired[str | None]
    used_at: NotRequired[str | None]
