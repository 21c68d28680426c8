import type { Notification, TopicEvent } from "./messages.js";
import { notificationOf, topicEventsOf } from "./parse.js";
import { type Kept, type Store, memory } from "./store.js";
import { type Client, type Element, assemble, xml } from "./xmpp.js";

/** Where a device is: it logs in, has a session, waits before it comes back, or has ended. */
export type State = "offline" | "connecting" | "online" | "waiting" | "refused";

/** How a device is made. `jid`, `secret` and `url` are of its enrolment. */
export interface DeviceOptions {
  jid: string;
  /** May be left out while the store has a token. */
  secret?: string;
  /** `endpoints.websocket_url` of the enrolment. */
  url: string;
  /** Is called with each notification, once, in their order: the next one waits for it. */
  onNotification?: (notification: Notification) => void | Promise<void>;
  /** Is called with what happens on topics. */
  onTopic?: (event: TopicEvent) => void | Promise<void>;
  /** Is told of the state. */
  onState?: (state: State) => void;
  /** Is told of what went wrong: on the connection, or in the functions above. */
  onError?: (error: Error) => void;
  /** Keeps tokens and the last items of topics; forgotten with the program otherwise. */
  store?: Store;
  /**
   * What acknowledges a notification. `session`: that this program read it; the session is resumed after a lost connection (XEP-0198). `receipt`:
   * that `onNotification` has ended well (XEP-0184); a session is not resumed then, and what was not acknowledged comes again in the next one.
   */
  acknowledge?: "session" | "receipt";
  /** Waits between attempts to connect, in milliseconds: 1,000 and 60,000. Each is random, up to twice the one before. */
  firstWaitMs?: number;
  longestWaitMs?: number;
}

/** The server refused the login: the secret is wrong, or the device was removed or disabled. */
export class Refused extends Error {
  override name = "Refused";
}

const PUBSUB = "http://jabber.org/protocol/pubsub";
const ANSWER_MS = 20_000;
const GOODBYE_MS = 2_000;
/** How long a login may take. */
const LOGIN_MS = 30_000;
/** A connection is dead that is silent for so long: a server answers `<r/>`, which is sent every half minute, or asks a silent client after one. */
const SILENCE_MS = { session: 75_000, receipt: 150_000 };
/** Two copies of a device would end each other for ever. */
const CONFLICT_MS = 300_000;
/** What a login is not worth repeating for. */
const REFUSALS = new Set(["not-authorized", "account-disabled", "credentials-expired"]);
/** How many notifications are known again. */
const KNOWN_MAX = 200;

/** A device: one session, which outlives its connections. */
export class Device {
  readonly #options: DeviceOptions;
  readonly #parts: ReturnType<typeof assemble>;
  readonly #xmpp: Client;
  readonly #domain: string;
  readonly #store: Store;
  #kept: Kept = { userAgent: crypto.randomUUID(), items: {} };
  #state: State = "offline";
  #isActive = true;
  #failures = 0;
  #attempts = 0;
  /** What the server asked to wait, for the next time. */
  #asked: number | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #silence: ReturnType<typeof setTimeout> | undefined;
  #online: { resolve: () => void; reject: (error: Error) => void } | undefined;
  #ending: Promise<void> = Promise.resolve();
  #known: string[] = [];
  /** Handlers run one after the other. */
  #work: Promise<void> = Promise.resolve();

  constructor(options: DeviceOptions) {
    this.#options = options;
    this.#store = options.store ?? memory();
    const [username = "", domain = ""] = options.jid.split("@");
    this.#domain = domain;
    const credentials = async () => {
      const { token } = this.#kept;
      if (!token && options.secret === undefined) throw new Error("there is neither a secret nor a token");
      return { username, token, ...(options.secret === undefined ? {} : { password: options.secret }) };
    };
    const userAgent = () => xml("user-agent", { id: this.#kept.userAgent });
    this.#parts = assemble({ service: options.url, domain }, { isManaged: options.acknowledge !== "receipt", credentials, userAgent });
    this.#xmpp = this.#parts.entity;
    this.#setUp();
  }

  /** Where it is. */
  get state(): State {
    return this.#state;
  }

  /** The full JID of its session. */
  get jid(): string | undefined {
    return this.#xmpp.jid?.toString();
  }

  /** Connects, and stays connected until `disconnect`. Resolves when it is online, however long that takes; a login that is refused is an error. */
  async connect(): Promise<void> {
    if (!this.#isOver()) throw new Error(`the device is ${this.#state}`);
    await this.#ending;
    this.#xmpp.timeout = ANSWER_MS;
    // Its own waits for a goodbye, and then ends what has been connected meanwhile.
    this.#xmpp.disconnect = async () => this.#xmpp.socket?.end();
    this.#kept = (await this.#store.load()) ?? this.#kept;
    const online = new Promise<void>((resolve, reject) => (this.#online = { resolve, reject }));
    this.#attempt();
    return online;
  }

  /** Ends the session in good order. */
  async disconnect(): Promise<void> {
    clearTimeout(this.#timer);
    const isOnline = this.#state === "online";
    this.#become("offline");
    this.#online?.reject(new Error("the device was disconnected"));
    this.#online = undefined;
    await this.#ending;
    this.#ending = this.#goodbye(isOnline);
    await this.#ending;
  }

  /** Says whether somebody uses the device. While nobody does, it is given no notification for the audience `active`. */
  async setActive(isActive: boolean): Promise<void> {
    this.#isActive = isActive;
    if (this.#state === "online") await this.#sendActivity();
  }

  /** Follows a topic, from now on and for good. */
  async subscribe(topic: string): Promise<void> {
    await this.#askPubsub("set", xml("subscribe", { node: topic, jid: this.#options.jid }));
  }

  /** Follows a topic no longer. */
  async unsubscribe(topic: string): Promise<void> {
    await this.#askPubsub("set", xml("unsubscribe", { node: topic, jid: this.#options.jid }));
  }

  /** The topics that it follows. */
  async subscriptions(): Promise<string[]> {
    const answer = await this.#askPubsub("get", xml("subscriptions"));
    return answer?.getChild("subscriptions")?.getChildren("subscription").map((one) => one.attrs["node"] ?? "") ?? [];
  }

  #askPubsub(kind: "get" | "set", request: Element): Promise<Element | undefined> {
    return this.#parts.iqCaller[kind](xml("pubsub", { xmlns: PUBSUB }, request), `pubsub.${this.#domain}`, ANSWER_MS);
  }

  #setUp(): void {
    const { fast, streamManagement } = this.#parts;
    if (streamManagement) streamManagement.timeout = 0;
    fast.fetchToken = async () => this.#kept.token;
    fast.saveToken = (token) => this.#keep({ token });
    fast.deleteToken = async () => {
      delete this.#kept.token;
      await this.#keep({});
    };
    this.#xmpp.on("element", () => this.#heard());
    this.#xmpp.on("stanza", (stanza) => this.#read(stanza));
    // A moment later stream management counts what is sent, as the server does.
    this.#xmpp.on("online", () => void Promise.resolve().then(() => this.#begin()));
    streamManagement?.on("resumed", () => this.#resume());
    this.#xmpp.on("error", (error) => this.#failed(error));
    this.#xmpp.on("disconnect", () => {
      // A login that the end of the connection interrupted would answer to the server in the next one.
      this.#xmpp.removeAllListeners("nonza");
      this.#wait();
    });
  }

  /** Connects once. What becomes of it is an event: online, resumed, or disconnect. */
  #attempt(): void {
    this.#become("connecting");
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#drop(), LOGIN_MS);
    const opened = this.#xmpp.connect(this.#options.url).then(() => this.#xmpp.open({ domain: this.#domain }));
    const attempt = ++this.#attempts;
    // It may be told of long after the next attempt has begun.
    opened.catch(() => attempt === this.#attempts && this.#drop());
  }

  /** Ends the connection; the event `disconnect` tells that it has ended. */
  #drop(): void {
    if (this.#xmpp.socket) this.#xmpp.socket.end();
    else this.#wait();
  }

  /** Ends the connection for good: in good order where there is one. */
  async #goodbye(isThere: boolean): Promise<void> {
    clearTimeout(this.#silence);
    this.#xmpp.timeout = GOODBYE_MS;
    if (isThere) {
      this.#xmpp.disconnect = Object.getPrototypeOf(this.#xmpp).disconnect;
    } else if (this.#xmpp.socket) {
      // A login that is under way may still succeed: its session is forgotten behind that.
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, GOODBYE_MS);
        this.#xmpp.once("disconnect", () => {
          clearTimeout(timer);
          resolve();
        });
        this.#xmpp.socket?.end();
      });
    }
    if (this.#xmpp.status !== "offline") await this.#xmpp.stop().catch(() => {});
  }

  /** Something came: the connection lives. */
  #heard(): void {
    clearTimeout(this.#silence);
    if (this.#isOver()) return;
    this.#silence = setTimeout(() => this.#drop(), SILENCE_MS[this.#options.acknowledge ?? "session"]);
  }

  /** Whether nothing more is to be done. */
  #isOver(): boolean {
    return this.#state === "offline" || this.#state === "refused";
  }

  /** Waits for the next attempt, if there is to be one. */
  #wait(): void {
    if (this.#isOver() || this.#state === "waiting") return;
    const { firstWaitMs = 1_000, longestWaitMs = 60_000 } = this.#options;
    const backoff = Math.random() * Math.min(longestWaitMs, firstWaitMs * 2 ** this.#failures++);
    const wait = (this.#asked ?? 0) + backoff;
    this.#asked = undefined;
    this.#become("waiting");
    clearTimeout(this.#silence);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#attempt(), wait);
  }

  #failed(error: Error & { condition?: string; element?: Element }): void {
    const { condition, element } = error;
    const hasNoProof = this.#options.secret === undefined && this.#kept.token === undefined;
    const isLogin = error.name === "SASLError";
    if (hasNoProof || (isLogin && REFUSALS.has(condition ?? ""))) {
      const refused = new Refused(`the login was refused: ${condition ?? error.message}`, { cause: error });
      clearTimeout(this.#timer);
      this.#become("refused");
      this.#ending = this.#goodbye(true);
      if (!this.#online) this.#options.onError?.(refused);
      this.#online?.reject(refused);
      this.#online = undefined;
      return;
    }
    const seconds = element?.getChild("retry-after", "urn:carillon:retry:0")?.attrs["seconds"];
    if (seconds !== undefined) this.#asked = Number(seconds) * 1000;
    else if (condition === "conflict") this.#asked = CONFLICT_MS;
    if (this.#state !== "offline") this.#options.onError?.(error);
    // A login that failed otherwise, such as for a fault of the server, may succeed over the next connection.
    if (isLogin) this.#drop();
  }

  /** A new session. */
  #begin(): void {
    if (this.#isOver()) return;
    const have = Object.entries(this.#kept.items).map(([topic, item]) => xml("have", { topic, item }));
    const topics = have.length ? xml("topics", { xmlns: "urn:carillon:topics:0" }, ...have) : undefined;
    this.#send(xml("presence", {}, topics));
    this.#resume();
  }

  /** The session goes on, where it is not a new one. */
  #resume(): void {
    if (this.#isOver()) return;
    clearTimeout(this.#timer);
    this.#failures = 0;
    if (!this.#isActive) this.#send(this.#activity());
    this.#become("online");
    this.#online?.resolve();
    this.#online = undefined;
  }

  #activity(): Element {
    return xml(this.#isActive ? "active" : "inactive", { xmlns: "urn:xmpp:csi:0" });
  }

  async #sendActivity(): Promise<void> {
    await this.#xmpp.send(this.#activity());
  }

  /** What cannot be sent is lost with its connection, which is told otherwise. */
  #send(element: Element): void {
    this.#xmpp.send(element).catch(() => {});
  }

  #read(stanza: Element): void {
    if (!stanza.is("message") || stanza.attrs["type"] === "error") return;
    this.#do(async () => {
      const notification = notificationOf(stanza);
      if (notification) await this.#give(notification, stanza);
      for (const event of topicEventsOf(stanza)) {
        await this.#options.onTopic?.(event);
        await this.#note(event);
      }
    });
  }

  /** Gives a notification that was not given before, and acknowledges it, also one that is known. */
  async #give(notification: Notification, message: Element): Promise<void> {
    if (!this.#known.includes(notification.id)) {
      await this.#options.onNotification?.(notification);
      this.#known = [...this.#known.slice(1 - KNOWN_MAX), notification.id];
    }
    if (message.getChild("request", "urn:xmpp:receipts")) {
      const receipt = xml("received", { xmlns: "urn:xmpp:receipts", id: notification.id });
      this.#send(xml("message", { to: message.attrs["from"] }, receipt));
    }
  }

  /** Remembers which item of a topic was the last. */
  async #note(event: TopicEvent): Promise<void> {
    const { [event.topic]: last, ...others } = this.#kept.items;
    if (event.type === "item") await this.#keep({ items: { ...others, [event.topic]: event.id } });
    else if (event.type !== "retracted" || event.id === last) await this.#keep({ items: others });
  }

  async #keep(latest: Partial<Kept>): Promise<void> {
    this.#kept = { ...this.#kept, ...latest };
    await this.#store.save(this.#kept);
  }

  /** Runs behind what runs already. */
  #do(work: () => Promise<void>): void {
    this.#work = this.#work.then(work).catch((error) => this.#options.onError?.(error));
  }

  #become(state: State): void {
    if (state === this.#state) return;
    this.#state = state;
    this.#options.onState?.(state);
  }
}
