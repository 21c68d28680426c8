import type { Http } from "./http.js";
import { backoffMs, isWorthRepeating, pause, waitMs } from "./retry.js";
import type { EventType, NotificationState, NotificationView, RoomEventView } from "./types.js";

/** The node says something every 15 seconds. A connection that is silent for so long is dead. */
const SILENCE_MS = 45_000;

/**
 * What comes on the stream of events:
 *
 * - a notification reached a state; `id` is the event's number where it can be read again: a stored notification has ended;
 * - something happened to a room, where `types` ask for it; `id` is the event's number;
 * - the events between two numbers were forgotten before they could be read, and `Client.notifications` says what became of them;
 * - so many states were lost because they were not read fast enough; none of them has a number.
 */
export type Event =
  | { type: "notification"; id: number | undefined; notification: NotificationView }
  | { type: "room"; id: number | undefined; room: RoomEventView }
  | { type: "gap"; after: number; next: number }
  | { type: "lagged"; count: number };

/** Which events to follow. */
export interface EventsOptions {
  /** Of notifications, only these states. */
  states?: NotificationState[];
  /** The types of events; those of notifications by default. */
  types?: EventType[];
  /** Begins behind the event of this number; otherwise now. */
  after?: number;
  /** Ends the stream, with its reason. */
  signal?: AbortSignal;
}

/**
 * Events without an end; a lost connection is made again and goes on behind the last event, perhaps giving one twice. Leaving a loop over
 * them closes the connection.
 */
export class Events implements AsyncIterableIterator<Event> {
  /** The number up to which everything has been given. Keep it when the event has been dealt with, and give it as `after` next time. */
  lastId: number | undefined;
  readonly #http: Http;
  readonly #url: string;
  readonly #signal: AbortSignal | undefined;
  readonly #events: AsyncGenerator<Event | undefined>;

  private constructor(http: Http, { states, types, after, signal }: EventsOptions) {
    this.#http = http;
    [, this.#url] = http.target("GET /v1/events", { query: { state: states?.join(","), type: types?.join(",") } });
    this.#signal = signal;
    this.lastId = after;
    this.#events = this.#run();
  }

  /** Begins to follow. */
  static async open(http: Http, options: EventsOptions): Promise<Events> {
    const events = new Events(http, options);
    // The node's first words: it follows from here.
    await events.#events.next();
    return events;
  }

  async next(): Promise<IteratorResult<Event, undefined>> {
    for (;;) {
      const { done, value } = await this.#events.next();
      if (done) return { done, value: undefined };
      if (value) return { done: false, value };
    }
  }

  /** Ends the connection. */
  async return(): Promise<IteratorResult<Event, undefined>> {
    await this.#events.return(undefined);
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** What one connection after the other brings. Once there was one, only a refusal for good ends it. */
  async *#run(): AsyncGenerator<Event | undefined> {
    let failures = 0;
    let wasOpen = false;
    for (;;) {
      let wait = backoffMs(this.#http.retry, 1);
      try {
        for await (const event of this.#connection()) {
          [failures, wasOpen] = [0, true];
          yield event;
        }
      } catch (error) {
        if (!isWorthRepeating(error)) throw error;
        const asked = waitMs(this.#http.retry, ++failures, error);
        if (asked === undefined && !wasOpen) throw error;
        wait = asked ?? backoffMs(this.#http.retry, failures);
      }
      await pause(wait, this.#signal);
    }
  }

  /** What one connection brings: an event, or nothing for what only shows that it lives. */
  async *#connection(): AsyncGenerator<Event | undefined> {
    const headers: Record<string, string> = { accept: "text/event-stream" };
    if (this.lastId !== undefined) headers["last-event-id"] = String(this.lastId);
    let text = "";
    for await (const piece of this.#http.stream(this.#url, headers, SILENCE_MS, this.#signal)) {
      const frames = (text + piece).split("\n\n");
      text = frames.pop() ?? "";
      for (const frame of frames) {
        const fields = Object.fromEntries(frame.split("\n").map((line) => line.split(/: ?(.*)/s, 2)));
        const id = fields["id"] === undefined ? undefined : Number(fields["id"]);
        const event = read(fields["event"], fields["data"], id);
        this.lastId = id ?? this.lastId;
        yield event;
      }
    }
  }
}

/** An event of the stream. One that a later version of the node has is passed over. */
function read(kind: string | undefined, data: string | undefined, id: number | undefined): Event | undefined {
  if (kind === undefined || data === undefined) return undefined;
  if (kind === "notification") return { type: kind, id, notification: JSON.parse(data) as NotificationView };
  if (kind.startsWith("room_")) return { type: "room", id, room: JSON.parse(data) as RoomEventView };
  if (kind === "gap" || kind === "lagged") return { type: kind, ...JSON.parse(data) };
  return undefined;
}
