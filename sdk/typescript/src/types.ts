/**
 * What requests and answers are made of, by the names of the node's OpenAPI document. A member that a newer node adds is there, though its
 * type is not. Times in answers are text (RFC 3339, UTC).
 */

export type Access = "open" | "whitelist";
export type AcknowledgedBy = "stream-management" | "receipt" | "socket" | "link";
export type Affiliation = "outcast" | "none" | "member" | "admin" | "owner";
export type AgentClass = "mobile" | "tablet" | "desktop" | "other";
export type Audience = "active" | "connected" | "always";
export type DropReason = "unknown-device" | "not-connected" | "not-active" | "connection-lost" | "queue-full" | "device-deleted" | "module";
export type EventType =
  | "notification"
  | "room_created"
  | "room_destroyed"
  | "room_members"
  | "room_subject"
  | "room_message"
  | "room_moderated";
export type NotificationState =
  | "scheduled"
  | "accepted"
  | "stored"
  | "sent"
  | "acknowledged"
  | "expired"
  | "replaced"
  | "cancelled"
  | "dropped"
  | "opened";
export type Priority = "low" | "normal" | "high";
export type PublishModel = "publishers" | "subscribers" | "open";
export type PushState = "taken" | "refused" | "failed" | "gone";
export type Reach = "active" | "asleep" | "unavailable" | "offline";
export type Scope = "send" | "broadcast" | "topics" | "enrol" | "chat" | "rooms" | "links" | "matches" | "admin" | "read_messages" | "trace_payload";
export type SendLast = "never" | "on_sub" | "on_sub_and_presence";

/** A time in a request. */
export type Time = string | Date;

/** What went wrong (RFC 9457). */
export interface Problem {
  type: string;
  code: string;
  title: string;
  status: number;
  detail: string;
  pointer?: string;
  request_id?: string;
  reason?: string;
  state?: string;
}

/** A notification to be sent, but for its target. */
export interface NotificationOptions {
  audience?: Audience;
  ttl?: number | null;
  priority?: Priority;
  collapse_key?: string | null;
  payload?: unknown;
  payload_xml?: string | null;
  link?: string | null;
  send_at?: Time | null;
  dry_run?: boolean;
}

/** A notification to be sent. */
export interface NotificationBody extends NotificationOptions {
  to: string | string[];
}

/** What became of a notification to one target: `id` and `state`, or `error`. */
export interface SendResult {
  to: string;
  id?: string | null;
  state?: NotificationState | null;
  reason?: DropReason | null;
  error?: Problem | null;
}

/** What became of a request to send. With one target, its members are here, too. */
export interface SendResponse {
  results: SendResult[];
  to?: string | null;
  id?: string | null;
  state?: NotificationState | null;
  reason?: DropReason | null;
  dry_run?: boolean;
}

/** What became of a notification among many. */
export interface BatchLine {
  line: number;
  to?: string;
  id?: string | null;
  state?: NotificationState | null;
  reason?: DropReason | null;
  error?: Problem | null;
}

/** The pushes of a notification to one registration: the last request, and how many there were. */
export interface PushView {
  registration: number;
  node: string;
  channel: string;
  state: PushState;
  reason?: string | null;
  requests: number;
  sent_at: string;
  answered_at: string;
}

/** What became of a notification: its trace. */
export interface NotificationView {
  id: string;
  to: string;
  audience: Audience;
  priority: Priority;
  state: NotificationState;
  accepted_at: string;
  expires_at?: string | null;
  collapse_key?: string | null;
  key?: number | null;
  send_at?: string | null;
  stored_at?: string | null;
  sent_at?: string | null;
  acknowledged_at?: string | null;
  ended_at?: string | null;
  acknowledged_by?: AcknowledgedBy | null;
  reason?: DropReason | null;
  opened_at?: string | null;
  opened_by?: AgentClass | null;
  pushes?: PushView[];
}

/** An account that is something else to a room. */
export interface RoomMemberChangeView {
  account: string;
  was: Affiliation;
  affiliation: Affiliation;
}

/** A message of a room. */
export interface RoomMessageEventView {
  archive_id: number;
  id?: string | null;
  from?: string | null;
  nick?: string | null;
  body?: string | null;
}

/** Something that happened to a room. Which members it has besides the first three follows from its type. */
export interface RoomEventView {
  type: EventType;
  room: string;
  at: string;
  by?: string | null;
  reason?: string | null;
  members?: RoomMemberChangeView[] | null;
  message?: RoomMessageEventView | null;
  subject?: string | null;
}

/** What an account is now. */
export interface PresenceView {
  jid: string;
  online?: boolean | null;
  state?: Reach | null;
  sessions?: number | null;
  since?: string | null;
  error?: Problem | null;
}

/** How a topic behaves. What is left out has its default; in a change, it stays as it is. */
export interface TopicConfig {
  title?: string | null;
  access_model?: Access | null;
  publish_model?: PublishModel | null;
  max_items?: number | null;
  persist_items?: boolean | null;
  deliver_payloads?: boolean | null;
  send_last_published_item?: SendLast | null;
  notify_retract?: boolean | null;
  notify_delete?: boolean | null;
}

/** What was counted of a topic. */
export interface FiguresView {
  sessions: number;
  published: number;
  delivered: number;
  subscribers?: number | null;
}

/** A topic. */
export interface TopicView {
  name: string;
  domain: string;
  created_at: string;
  config: TopicConfig;
  affiliations?: Record<string, string>;
  figures?: FiguresView | null;
}

/** An item to be published. */
export interface ItemBody {
  id?: string | null;
  payload?: unknown;
  payload_xml?: string | null;
}

/** An item that a topic keeps. */
export interface ItemView {
  id: string;
  published_at: string;
  publisher?: string | null;
  payload?: unknown;
  payload_xml?: string | null;
}

/** An item that was published. */
export interface Published {
  id: string;
  published_at: string;
}

/** A device. */
export interface DeviceView {
  id: string;
  jid: string;
  state: string;
  created_at: string;
  pending: number;
  disabled_at?: string | null;
  sessions?: number | null;
  topics?: string[] | null;
}

/** Where devices connect to. */
export interface Endpoints {
  host?: string | null;
  c2s_port?: number | null;
  c2s_tls_port?: number | null;
  websocket_url?: string | null;
}

/** A device that was enrolled. Its secret is shown now and never again. */
export interface Enrolled {
  id: string;
  jid: string;
  secret: string;
  endpoints: Endpoints;
}

/** Where a device connects. */
export interface EndpointView {
  id: string;
  jid: string;
  cell?: string;
  moving?: boolean;
  endpoints: Endpoints;
}

/** A device's new secret, shown now and never again. */
export interface Rotated {
  id: string;
  jid: string;
  secret: string;
  sessions_ended: number;
}

/** Whether a device could log in. */
export interface Validated {
  valid: boolean;
  endpoints: Endpoints;
}

/** A subscription. */
export interface SubscriptionView {
  topic: string;
  jid: string;
}

/** A link to be made, but for its URL. */
export interface LinkOptions {
  code?: string | null;
  expires_at?: Time | null;
  may_change?: boolean | null;
}

/** A link to be made. */
export interface LinkBody extends LinkOptions {
  url: string;
}

/** What is to be changed of a link. */
export interface LinkChange {
  url?: string | null;
  expires_at?: Time | null;
  removed?: boolean | null;
}

/** A short link. */
export interface LinkView {
  code: string;
  short_url: string;
  url: string;
  may_change: boolean;
  created_at: string;
  clicks: number;
  expires_at?: string | null;
  removed_at?: string | null;
  key?: number | null;
  last_click_at?: string | null;
}

/** An invitation to be made. */
export interface InvitationBody {
  inviter?: string | null;
  localpart?: string | null;
  uses?: number;
  expires_at?: Time | null;
  registers?: boolean;
}

/** An invitation, without its token. */
export interface InvitationView {
  id: number;
  registers: boolean;
  uses_max: number;
  uses: number;
  created_at: string;
  expires_at: string;
  inviter?: string | null;
  localpart?: string | null;
}

/** A new invitation. Its token is shown now and never again. */
export interface InvitationCreated extends InvitationView {
  token: string;
  uri: string;
  landing_url?: string | null;
}

/** The API key of the client, and where it acts. */
export interface OwnKey {
  id: number;
  name: string;
  scopes: Scope[];
  created_at: string;
  default_domain: string;
  networks: string[];
  certificates: string[];
  domain?: string | null;
  expires_at?: string | null;
  used_at?: string | null;
}

