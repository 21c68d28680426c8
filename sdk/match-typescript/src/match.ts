import { Malformed, PART, type EndReason, type Header, type SeatState, type ServerFrame, type Welcome, acknowledges, cut, fnv1a, read, u32, write } from "./frames.js";

/** Where a player is: before `join`, connecting for the first time, in the match, cut off, or done with it. */
export type State = "idle" | "connecting" | "joined" | "away" | "over";

/** A tick: what counts for each seat in it. */
export interface Tick {
  tick: number;
  /** By seat: the input that counts, its last one where none came in time; nothing for a seat that never sent one, or has left. */
  inputs: (Uint8Array | undefined)[];
  /** The seats that sent one for this tick, and those whose last one counts again. */
  given: bigint; repeated: bigint;
}

/** How a match ended, which players had not left, and what came of it: what most of them said. */
export type Ended = { tick: number; reason: EndReason; seats: bigint; outcome: Uint8Array };

/** Round trips of pings, in milliseconds; smoothed, and how they vary (RFC 6298 §2). */
export type Rtt = { lastMs: number; smoothedMs: number; variationMs: number };

/** How a player is made. */
export interface MatchOptions {
  /** Where the node's WebSocket is: `endpoints.websocket_url` of an enrolment. */
  url: string;
  /** `seating.token` of the ticket. */
  token: string;
  /** The seat is taken, for the first time or again. */
  onJoined?: (welcome: Welcome) => void;
  /** Each tick, in their order: the place to call {@link Match.send}. */
  onTick?: (tick: Tick) => void;
  /** The state of the game after the last tick, where `snapshot_ticks` of the queue says that players are asked for it. The same state is the same bytes everywhere. */
  save?: () => Uint8Array;
  /** In place of {@link onTick} where a module decides: what it says of each tick, in their order. */
  onUpdate?: (update: Uint8Array, tick: number) => void;
  /** The whole state after a tick, as the module or `save` of a player wrote it, for one who lacks what was before. What follows goes on from it. */
  onSnapshot?: (snapshot: Uint8Array, tick: number) => void;
  /** Another player came, lost the connection, or left. */
  onSeat?: (seat: number, state: SeatState, tick: number) => void;
  /** The clock runs, or stands; and the player who wanted it, if one did. */
  onClock?: (runs: boolean, seat: number | undefined, tick: number) => void;
  /** Players said different hashes of a tick. */
  onDesync?: (desync: { tick: number; minority: bigint; hash: number }) => void;
  onRtt?: (rtt: Rtt) => void;
  onEnded?: (ended: Ended) => void;
  /** The match is over for this player, without an end. */
  onError?: (error: MatchError) => void;
  onState?: (state: State) => void;
}

/** Why a player cannot go on. `code` is an error of the protocol, `unreachable`, or `bad-frame`. */
export class MatchError extends Error {
  override name = "MatchError";
  constructor(readonly code: string, text: string) { super(text ? `${code}: ${text}` : code); }
}

const SUBPROTOCOL = "carillon-match.1";
/** A connection is lost on which nothing came for so long after a ping. */
const SILENCE_MS = 5000, PING_MS = 1000;
/** How long is tried before it is known for how long the seat is held; waits between attempts. */
const UNKNOWN_HOLD_MS = 30_000, FIRST_WAIT_MS = 50, LONGEST_WAIT_MS = 2000;
/** How many inputs a frame has at most, how many wait for the clock of a relayed match, and how far ahead of it they are sent; the server takes 64. */
const INPUTS_MAX = 8, WAITING_MAX = 33, LEAD_MAX = 30;
/** So many late inputs, without ten seconds between them that were in time, mean that inputs have to leave earlier. */
const LATE_MAX = 3, IN_TIME_S = 10;
/** After these errors the seat can still be taken again. */
const PASSING = new Set(["idle", "too-slow"]);

/** A player of one match. It outlives its connections: what was lost is made good by joining again with the same token. */
export class Match {
  readonly #options: MatchOptions;
  #state: State = "idle";
  #socket: WebSocket | undefined;
  #rest: Uint8Array = new Uint8Array();
  #welcome: Welcome | undefined;
  /** The last tick that came, and the last input of each seat. */
  #have = 0;
  #last: (Uint8Array | undefined)[] = [];
  /** The newest input that was sent, and when; the first on this connection. */
  #sent = 0; #sentAt = 0; #first = Number.POSITIVE_INFINITY;
  #unacknowledged: { tick: number; input: Uint8Array }[] = [];
  #lead = 0; #late = 0; #inTime = 0; #runs = false;
  #rtt: Rtt | undefined;
  #pinged: { stamp: number; at: number } | undefined;
  #timer: ReturnType<typeof setInterval> | undefined;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #stamp = 0; #heardAt = 0; #failures = 0; #lostAt = 0;

  constructor(options: MatchOptions) { this.#options = options; }

  get state(): State { return this.#state; }
  /** What the server said of the match, once it did; the last tick that came; whether the clock runs. */
  get welcome(): Welcome | undefined { return this.#welcome; }
  get tick(): number { return this.#have; }
  get runs(): boolean { return this.#runs; }
  get rtt(): Rtt | undefined { return this.#rtt; }
  /** For how many ticks ahead inputs are sent: `inputDelay` of the match, or more where that comes too late. */
  get lead(): number { return this.#lead; }

  /** Takes the seat, and stays in it until the match is over; or takes it again after {@link Match.disconnect}. */
  join(): void {
    if (this.#socket || this.#state === "over") return;
    this.#lostAt = performance.now();
    this.#connect();
  }

  /** Ends the connection without a word, as a lost one would. The seat is held for a while; `join` takes it again. */
  disconnect(): void {
    if (this.#state === "over") return;
    this.#drop();
    if (this.#state !== "idle") this.#become("away");
  }

  /**
   * Sends the input that counts from now on. In `lockstep` and `authoritative` it is for the tick that is {@link Match.lead} ahead of the last one, and there is one for each
   * tick; in `relay` each call is an input of its own. Returns its tick, or nothing if it was not sent: not joined, too early, or too many wait.
   */
  send(input: Uint8Array): number | undefined {
    const welcome = this.#welcome;
    if (this.#state !== "joined" || !welcome || welcome.seat >= welcome.seats) return undefined;
    if (input.length > welcome.inputBytesMax) throw new RangeError(`an input has ${welcome.inputBytesMax} bytes at most`);
    const isRelay = welcome.mode === "relay";
    const now = performance.now();
    // Ticks of a player who comes back are given all at once: an input for each of them would be late, and too many.
    if (!isRelay && now - this.#sentAt < 400 / welcome.tickRate) return undefined;
    const from = isRelay ? this.#sent + 1 : Math.max(this.#sent, this.#have) + 1;
    const to = isRelay ? from : this.#have + this.#lead;
    if (from > to || this.#unacknowledged.length >= WAITING_MAX) return undefined;
    // Inputs of a frame are of consecutive ticks.
    if (from > this.#sent + 1) this.#unacknowledged = [];
    for (let tick = from; tick <= to; tick++) this.#unacknowledged.push({ tick, input: input.slice() });
    this.#first = Math.min(this.#first, from);
    [this.#sent, this.#sentAt] = [to, now];
    this.#sendInputs(Math.max(INPUTS_MAX, to - from + 1));
    return to;
  }

  /** Says what the state of the game is after a tick, hashed to 32 bits: so players with different states are found. */
  hash(tick: number, hash: number): void { this.#write(write.hash(tick, hash >>> 0)); }
  /** Wants the clock to stand, or to run again. */
  pause(): void { this.#write(write.pause()); }
  resume(): void { this.#write(write.resume()); }
  /** Says that the game is over after this tick, and what came of it, in at most 512 bytes. The match ends when most players say the same. */
  finish(tick: number, outcome: Uint8Array): void { this.#write(write.outcome(tick, outcome)); }
  /** Gives up: the player has left for good. Like all that is said, only while it is joined. */
  leave(): void { this.#write(write.forfeit()); }

  #become(state: State): void {
    if (state !== this.#state) { this.#state = state; this.#options.onState?.(state); }
  }

  #connect(): void {
    this.#become(this.#welcome ? "away" : "connecting");
    clearTimeout(this.#retry);
    const socket = new WebSocket(this.#options.url, SUBPROTOCOL);
    socket.binaryType = "arraybuffer";
    [this.#socket, this.#rest, this.#first, this.#pinged] = [socket, new Uint8Array(), Number.POSITIVE_INFINITY, undefined];
    this.#heardAt = performance.now();
    clearInterval(this.#timer);
    this.#timer = setInterval(() => this.#ping(), PING_MS);
    socket.addEventListener("open", () => socket === this.#socket && this.#write(write.join(this.#have, this.#options.token)));
    socket.addEventListener("message", ({ data }) => socket === this.#socket && this.#receive(new Uint8Array(data as ArrayBuffer)));
    // An error is always followed by this.
    socket.addEventListener("close", () => socket === this.#socket && this.#lost());
    socket.addEventListener("error", () => {});
  }

  /** Forgets the connection, if there is one. */
  #drop(): void {
    clearInterval(this.#timer), clearTimeout(this.#retry);
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.close();
  }

  /** The connection is lost: the seat is taken again, unless it is too late. */
  #lost(): void {
    this.#drop();
    const now = performance.now();
    if (this.#state === "joined") [this.#lostAt, this.#failures] = [now, 0];
    this.#become(this.#welcome ? "away" : "connecting");
    const isTooLate = now - this.#lostAt > (this.#welcome?.holdMs ?? UNKNOWN_HOLD_MS);
    if (isTooLate) return this.#fail(new MatchError("unreachable", "the seat was not taken again in time"));
    const longest = Math.min(FIRST_WAIT_MS * 2 ** this.#failures++, LONGEST_WAIT_MS);
    this.#retry = setTimeout(() => this.#connect(), longest * (0.5 + Math.random() / 2));
  }

  #end(): void { this.#drop(); this.#become("over"); }
  #fail(error: MatchError): void { this.#end(); this.#options.onError?.(error); }
  #write(bytes: Uint8Array<ArrayBuffer>): void { if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(bytes); }

  #sendInputs(most: number): void {
    const newest = this.#unacknowledged.slice(-most).reverse();
    if (newest[0]) this.#write(write.inputs({ tick: newest[0].tick, ack: this.#have, missing: 0 }, newest.map(({ input }) => input)));
  }

  #ping(): void {
    const now = performance.now();
    if (this.#pinged && this.#heardAt < this.#pinged.at) {
      if (now - this.#pinged.at > SILENCE_MS) this.#lost();
      return;
    }
    if (this.#state !== "joined") return;
    this.#pinged = { stamp: this.#stamp = (this.#stamp + 1) >>> 0, at: now };
    this.#write(write.ping(u32(this.#stamp)));
  }

  #pong(stamp: Uint8Array): void {
    const seen = stamp.reduceRight((number, byte) => number * 256 + byte, 0);
    if (seen !== this.#pinged?.stamp) return;
    const lastMs = performance.now() - this.#pinged.at;
    const { smoothedMs: mean, variationMs: varied } = this.#rtt ?? { smoothedMs: lastMs, variationMs: lastMs / 2 };
    this.#rtt = { lastMs, smoothedMs: mean + (lastMs - mean) / 8, variationMs: varied + (Math.abs(mean - lastMs) - varied) / 4 };
    this.#options.onRtt?.(this.#rtt);
  }

  #receive(bytes: Uint8Array): void {
    this.#heardAt = performance.now();
    const socket = this.#socket;
    const stream = new Uint8Array(this.#rest.length + bytes.length);
    stream.set(this.#rest), stream.set(bytes, this.#rest.length);
    this.#rest = stream;
    try {
      // What is called may end the connection.
      for (let found; socket === this.#socket && (found = cut(this.#rest)); ) {
        this.#rest = found[1];
        this.#frame(read(found[0]));
      }
    } catch (error) {
      if (!(error instanceof Malformed)) throw error;
      this.#fail(new MatchError("bad-frame", error.message));
    }
  }

  #frame(frame: ServerFrame): void {
    const { onClock, onDesync, onEnded, onJoined, onSeat, onSnapshot, onUpdate } = this.#options;
    switch (frame.kind) {
      case "welcome": return this.#joined(frame.welcome, frame.ack, onJoined);
      case "tick": return this.#closed(frame);
      case "update": return this.#passed(frame) ? onUpdate?.(frame.update, frame.tick) : undefined;
      case "snapshot": return this.#passed(frame) ? onSnapshot?.(frame.snapshot, frame.tick) : undefined;
      case "wanted": return this.#wanted(frame.tick, frame.whole);
      case "seat": return onSeat?.(frame.seat, frame.state, frame.tick);
      case "desync": return onDesync?.(frame);
      case "pong": return this.#pong(frame.stamp);
      case "clock":
        this.#runs = frame.runs;
        if (frame.runs) this.#sendInputs(WAITING_MAX);
        return onClock?.(frame.runs, frame.seat, frame.tick);
      case "ended":
        this.#end();
        return onEnded?.(frame);
      case "error":
        // The server closes the connection, and it is lost like any other.
        if (!PASSING.has(frame.code)) this.#fail(new MatchError(frame.code, frame.text));
    }
  }

  #joined(welcome: Welcome, acknowledged: number, onJoined: MatchOptions["onJoined"]): void {
    // Of a player who was here in another life of the program the server knows more.
    this.#sent = Math.max(this.#sent, acknowledged);
    this.#lead ||= welcome.inputDelay;
    [this.#welcome, this.#runs, this.#failures] = [welcome, welcome.runs, 0];
    this.#become("joined");
    onJoined?.(welcome);
    if (welcome.mode === "relay") this.#sendInputs(WAITING_MAX);
    this.#ping();
  }

  /** Notes what a tick says of the player's own inputs. Whether the tick is new. */
  #passed(frame: Header): boolean {
    const { tick } = frame;
    if (tick <= this.#have) return false;
    this.#have = tick;
    const isTimed = this.#welcome?.mode !== "relay";
    this.#unacknowledged = this.#unacknowledged.filter((one) => !acknowledges(frame, one.tick) && !(isTimed && one.tick <= tick));
    if (isTimed && tick >= this.#first && tick <= this.#sent) this.#judge(acknowledges(frame, tick));
    return true;
  }

  #wanted(tick: number, whole: boolean): void {
    const state = tick === this.#have ? this.#options.save?.() : undefined;
    if (!state) return;
    this.#write(write.hash(tick, fnv1a(state)));
    for (let offset = 0; whole && offset < state.length; offset += PART) this.#write(write.snapshot(tick, state, offset));
  }

  #closed(frame: ServerFrame & { kind: "tick" }): void {
    const { tick, given, repeated } = frame;
    if (!this.#passed(frame)) return;
    const isLockstep = this.#welcome?.mode === "lockstep";
    for (const [seat, input] of frame.inputs) this.#last[seat] = input;
    const counts = isLockstep ? given | repeated : given;
    const inputs = Array.from({ length: this.#welcome?.seats ?? 0 }, (_, seat) => ((counts >> BigInt(seat)) & 1n ? this.#last[seat] : undefined));
    this.#options.onTick?.({ tick, inputs, given, repeated });
  }

  /** Inputs that come too late again and again leave earlier, and later again when that was for nothing. */
  #judge(isInTime: boolean): void {
    const { tickRate, inputDelay } = this.#welcome!;
    [this.#late, this.#inTime] = isInTime ? [this.#late, this.#inTime + 1] : [this.#late + 1, 0];
    if (this.#late < LATE_MAX && this.#inTime < IN_TIME_S * tickRate) return;
    this.#lead = isInTime ? Math.max(this.#lead - 1, inputDelay) : Math.min(this.#lead + 1, LEAD_MAX);
    [this.#late, this.#inTime] = [0, 0];
  }
}
