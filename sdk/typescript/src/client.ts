import { ApiError, NoAnswer } from "./errors.js";
import { Events, type EventsOptions } from "./events.js";
import { type Call, Http } from "./http.js";
import { DEFAULT_RETRY, type Retry, isForNow } from "./retry.js";
import type * as T from "./types.js";

/** Notifications in one request of `sendMany`. */
const LINES_MAX = 500;
const CHARACTERS_MAX = 1 << 20;

/** How to reach a node. */
export interface ClientOptions {
  /** The URL of the node's HTTP API. */
  url: string;
  /** An API key. */
  key: string;
  /** The domain to act in, for a key of the whole node. */
  domain?: string;
  /** How long to wait for an answer: 10,000. */
  timeoutMs?: number;
  /** How often requests that are safe to repeat are repeated. */
  retry?: Partial<Retry>;
  /** How much of a list is asked for at once: 1,000. */
  pageSize?: number;
  /** What makes requests, instead of the built-in `fetch`. */
  fetch?: typeof fetch;
}

/** A key of one's own makes it safe to send the same again within 24 hours, also from another process. */
export interface Idempotency {
  idempotencyKey?: string;
}

/** A node, or a cell of them, with an API key. */
export class Client {
  readonly #http: Http;
  readonly #pageSize: number;

  constructor({ url, key, domain, timeoutMs = 10_000, retry, pageSize = 1000, fetch: by }: ClientOptions) {
    if (!/^https?:\/\//.test(url)) throw new TypeError(`not an HTTP URL: ${url}`);
    const fetcher = by ?? ((...request: Parameters<typeof fetch>) => fetch(...request));
    this.#http = new Http({ url, key, domain, timeoutMs, retry: { ...DEFAULT_RETRY, ...retry }, fetch: fetcher });
    this.#pageSize = pageSize;
  }

  /** What the API key may do, and where. */
  ownKey(): Promise<T.OwnKey> {
    return this.#http.call("GET /v1/key");
  }

  /**
   * Sends a notification to a device, or to up to 1,000 of them. With one target a refusal is an `ApiError`. With a list each target has its own
   * result: look for `error` in `results`.
   */
  send(to: string | string[], options: T.NotificationOptions, { idempotencyKey = newKey() }: Idempotency = {}): Promise<T.SendResponse> {
    return this.#http.call("POST /v1/notifications", { body: { to, ...options }, idempotencyKey });
  }

  /**
   * Sends any number of notifications, each to one target; what became of each, in their order, as it becomes known.
   *
   * They travel by the hundred. One that is refused has `error` and does not affect the others. With a key of your own the same notifications in
   * the same order may be sent again, as a whole or in part: those that were done are not done again.
   */
  async *sendMany(
    notifications: Iterable<T.NotificationBody> | AsyncIterable<T.NotificationBody>,
    { idempotencyKey = newKey() }: Idempotency = {},
  ): AsyncGenerator<T.BatchLine> {
    let [before, number] = [0, 0];
    for await (const lines of requests(notifications)) {
      for (const result of await this.#sendLines(lines, `${idempotencyKey}-${number++}`)) {
        yield { ...result, line: before + result.line };
      }
      before += lines.length;
    }
  }

  async #sendLines(lines: string[], idempotencyKey: string): Promise<T.BatchLine[]> {
    const [method, url] = this.#http.target("POST /v1/notifications/batch");
    const headers = { "content-type": "application/x-ndjson", "idempotency-key": idempotencyKey };
    let results: T.BatchLine[] | undefined;
    try {
      await this.#http.repeat(async () => {
        results = undefined;
        const answer = await this.#http.exchange(url, { method, headers, body: lines.join("") });
        const told = answer.split("\n").slice(0, -1);
        if (told.length < lines.length) throw new NoAnswer("the answer to a batch ended before its last line");
        results = told.map((line) => JSON.parse(line) as T.BatchLine);
        // Under its key the whole may be sent again: what was done is not done twice.
        const problem = results.find(({ error }) => error && isForNow(error.status))?.error;
        if (problem) throw new ApiError(problem.status, problem);
      });
    } catch (error) {
      // It is about a line, and the last attempt has told of all of them.
      if (!results) throw error;
    }
    return results ?? [];
  }

  /** What became of a notification: its trace. */
  notification(id: string): Promise<T.NotificationView> {
    return this.#http.call("GET /v1/notifications/{id}", { path: { id } });
  }

  /** Notifications, newest first. */
  notifications(
    { states, ...query }: { to?: string; states?: T.NotificationState[]; key?: number; after?: T.Time; before?: T.Time } = {},
  ): AsyncGenerator<T.NotificationView> {
    return this.#pages("GET /v1/notifications", "notifications", { query: { state: states?.join(","), ...query } }, "cursor");
  }

  /** Cancels a notification that no device was given; else an `ApiError` with the code `too-late`. */
  cancel(id: string): Promise<T.NotificationView> {
    return this.#http.call("DELETE /v1/notifications/{id}", { path: { id } });
  }

  /** Events as they happen: from when this resolves, or all behind an event's number. */
  events(options: EventsOptions = {}): Promise<Events> {
    return Events.open(this.#http, options);
  }

  /** Who of up to 1,000 accounts is connected, and which notifications reach them. */
  async presence(accounts: string[]): Promise<T.PresenceView[]> {
    const answer = await this.#http.call<{ presence: T.PresenceView[] }>("POST /v1/presence", { body: { accounts }, safe: true });
    return answer.presence;
  }

  /** All topics, by name. */
  topics(): AsyncGenerator<T.TopicView> {
    return this.#pages("GET /v1/topics", "topics");
  }

  /** A topic and its figures. */
  topic(topic: string): Promise<T.TopicView> {
    return this.#http.call("GET /v1/topics/{topic}", { path: { topic } });
  }

  /** Creates a topic, or leaves one as it is that has all of this. Another is an `ApiError` with the code `already-exists`. */
  createTopic(topic: string, config: T.TopicConfig = {}): Promise<T.TopicView> {
    return this.#http.call("PUT /v1/topics/{topic}", { path: { topic }, body: config });
  }

  /** Changes what is named; what is `null` gets its default. */
  updateTopic(topic: string, changes: T.TopicConfig): Promise<T.TopicView> {
    return this.#http.call("PATCH /v1/topics/{topic}", { path: { topic }, body: changes });
  }

  /** Removes a topic with its items and subscriptions. */
  deleteTopic(topic: string): Promise<void> {
    return this.#http.call("DELETE /v1/topics/{topic}", { path: { topic } });
  }

  /** The bare JIDs of those who follow a topic. */
  subscribers(topic: string): AsyncGenerator<string> {
    return this.#pages("GET /v1/topics/{topic}/subscribers", "subscribers", { path: { topic } });
  }

  /** Publishes an item to everyone who follows a topic. */
  publish(topic: string, item: T.ItemBody, { idempotencyKey = newKey() }: Idempotency = {}): Promise<T.Published> {
    return this.#http.call("POST /v1/topics/{topic}/items", { path: { topic }, body: item, idempotencyKey });
  }

  /** The newest items that a topic keeps, or the one of an id. */
  async items(topic: string, query: { id?: string; limit?: number } = {}): Promise<T.ItemView[]> {
    return (await this.#http.call<{ items: T.ItemView[] }>("GET /v1/topics/{topic}/items", { path: { topic }, query })).items;
  }

  /** Retracts an item. */
  retract(topic: string, id: string): Promise<void> {
    return this.#http.call("DELETE /v1/topics/{topic}/items/{id}", { path: { topic, id } });
  }

  /** All devices, by id. */
  devices(): AsyncGenerator<T.DeviceView> {
    return this.#pages("GET /v1/devices", "devices");
  }

  /** A device. */
  device(id: string): Promise<T.DeviceView> {
    return this.#http.call("GET /v1/devices/{id}", { path: { id } });
  }

  /** Where a device connects; behind a front, where its cell is. */
  endpoint(id: string): Promise<T.EndpointView> {
    return this.#http.call("GET /v1/devices/{id}/endpoint", { path: { id } });
  }

  /** Enrols a device; the node makes what is left out. Not repeated: an answer that is lost has the secret in it. */
  enrol(device: { id?: string; secret?: string } = {}): Promise<T.Enrolled> {
    return this.#http.call("POST /v1/devices", { body: device });
  }

  /** Removes a device with all that waits for it. */
  deleteDevice(id: string): Promise<void> {
    return this.#http.call("DELETE /v1/devices/{id}", { path: { id } });
  }

  /** Gives a device another secret; its sessions end unless `keep_sessions`. Not repeated, as `enrol`. */
  rotateSecret(id: string, body: { secret?: string; keep_sessions?: boolean } = {}): Promise<T.Rotated> {
    return this.#http.call("POST /v1/devices/{id}/rotate", { path: { id }, body });
  }

  /** Whether a device could log in with a secret. */
  validateSecret(id: string, secret: string): Promise<T.Validated> {
    return this.#http.call("POST /v1/devices/{id}/validate", { path: { id }, body: { secret }, safe: true });
  }

  /** Keeps a device from logging in, and ends its sessions. What is sent to it waits. */
  disableDevice(id: string): Promise<void> {
    return this.#http.call("POST /v1/devices/{id}/disable", { path: { id }, safe: true });
  }

  /** Lets a device log in again. */
  enableDevice(id: string): Promise<void> {
    return this.#http.call("POST /v1/devices/{id}/enable", { path: { id }, safe: true });
  }

  /** The topics that a device follows. */
  async subscriptions(id: string): Promise<string[]> {
    return (await this.#http.call<{ topics: string[] }>("GET /v1/devices/{id}/subscriptions", { path: { id } })).topics;
  }

  /** Has a device follow a topic. */
  subscribe(id: string, topic: string): Promise<T.SubscriptionView> {
    return this.#http.call("PUT /v1/devices/{id}/subscriptions/{topic}", { path: { id, topic } });
  }

  /** Has a device follow a topic no longer. */
  unsubscribe(id: string, topic: string): Promise<void> {
    return this.#http.call("DELETE /v1/devices/{id}/subscriptions/{topic}", { path: { id, topic } });
  }

  /** All invitations, newest first. */
  invitations(): AsyncGenerator<T.InvitationView> {
    return this.#pages("GET /v1/invitations", "invitations");
  }

  /** Makes an invitation. Not repeated: an answer that is lost has the token in it. */
  createInvitation(invitation: T.InvitationBody = {}): Promise<T.InvitationCreated> {
    return this.#http.call("POST /v1/invitations", { body: invitation });
  }

  /** Revokes an invitation. */
  deleteInvitation(id: number): Promise<void> {
    return this.#http.call("DELETE /v1/invitations/{id}", { path: { id } });
  }

  /** Short links, newest first: all, or those whose code or URL has a text in it. */
  links(query: { search?: string } = {}): AsyncGenerator<T.LinkView> {
    return this.#pages("GET /v1/links", "links", { query });
  }

  /** Shortens a URL. The same URL gives the same link. */
  createLink(url: string, options: T.LinkOptions = {}): Promise<T.LinkView> {
    return this.#http.call("POST /v1/links", { body: { url, ...options }, safe: true });
  }

  /** A short link. */
  link(code: string): Promise<T.LinkView> {
    return this.#http.call("GET /v1/links/{code}", { path: { code } });
  }

  /** Changes what is named of a link. */
  updateLink(code: string, changes: T.LinkChange): Promise<T.LinkView> {
    return this.#http.call("PATCH /v1/links/{code}", { path: { code }, body: changes });
  }

  /** Takes a link down. */
  deleteLink(code: string): Promise<void> {
    return this.#http.call("DELETE /v1/links/{code}", { path: { code } });
  }

  /** What all pages of a list have; each is asked for when it is needed. */
  async *#pages<V>(operation: string, member: string, { query = {}, ...call }: Call = {}, cursor = "after"): AsyncGenerator<V> {
    for (let following: string | null = null; ; ) {
      const asked = { ...query, limit: this.#pageSize, ...(following === null ? {} : { [cursor]: following }) };
      const page: Record<string, unknown> = await this.#http.call(operation, { ...call, query: asked });
      yield* page[member] as V[];
      following = (page["next"] as string | null | undefined) ?? null;
      if (following === null) return;
    }
  }
}

/** The lines of one request after the other; the same notifications always fall into the same requests. */
async function* requests(notifications: Iterable<T.NotificationBody> | AsyncIterable<T.NotificationBody>): AsyncGenerator<string[]> {
  let [lines, size]: [string[], number] = [[], 0];
  for await (const notification of notifications) {
    const line = `${JSON.stringify(notification)}\n`;
    if (lines.length === LINES_MAX || (lines.length && size + line.length > CHARACTERS_MAX)) {
      yield lines;
      [lines, size] = [[], 0];
    }
    lines.push(line);
    size += line.length;
  }
  if (lines.length) yield lines;
}

/** An idempotency key that nobody else has. */
const newKey = () => crypto.randomUUID();
