// The frames of `carillon-match/1`, without I/O, as docs/book/matches.md, "Connect", has them.

const MODES = ["relay", "lockstep", "authoritative"] as const;
const STATES = ["away", "here", "left"] as const;
const REASONS = ["finished", "forfeit", "duration", "not-joined", "shutdown", "module"] as const;
const ERRORS = [
  "", "malformed", "too-long", "bad-token", "expired-token", "no-match", "left", "replaced", "not-joined", "too-far", "too-old", "idle", "too-slow",
  "elsewhere", "shutdown",
];

/** How ticks are made: one of each input, by the server's clock, or by a module of the server. What a seat is. Why a match is over. */
export type Mode = (typeof MODES)[number];
export type SeatState = (typeof STATES)[number];
export type EndReason = (typeof REASONS)[number];

/** What a player must know of the match. Masks have a bit for each seat ({@link seatsOf}). */
export interface Welcome {
  /** 255 for a spectator. */
  seat: number; seats: number; mode: Mode;
  /** Whether the clock runs; ticks per second; for how many ticks ahead inputs should be sent. */
  runs: boolean; tickRate: number; inputDelay: number; inputBytesMax: number;
  /** The seats that are taken; for how long one is held whose connection is lost; a random number, the same for all. */
  present: bigint; holdMs: number; seed: bigint;
}

/** What every frame begins with: its tick, the newest tick of the other side that its sender has, and which of the 32 before it lacks. */
export type Header = { tick: number; ack: number; missing: number };

/** A frame of the server. */
export type ServerFrame = Header &
  (
    | { kind: "welcome"; welcome: Welcome }
    | { kind: "tick"; given: bigint; repeated: bigint; inputs: Map<number, Uint8Array> }
    | { kind: "seat"; seat: number; state: SeatState }
    | { kind: "desync"; minority: bigint; hash: number }
    | { kind: "pong"; stamp: Uint8Array }
    | { kind: "clock"; runs: boolean; seat: number | undefined }
    | { kind: "ended"; reason: EndReason; seats: bigint; outcome: Uint8Array }
    | { kind: "error"; code: string; text: string }
    | { kind: "update"; update: Uint8Array }
    | { kind: "snapshot"; snapshot: Uint8Array }
    | { kind: "wanted"; whole: boolean }
  );

/** The bytes are no frame of the protocol. */
export class Malformed extends Error { override name = "Malformed"; }

const JOIN = 1, INPUTS = 2, HASH = 3, PING = 4, PAUSE = 5, CONTINUE = 6, FORFEIT = 7, OUTCOME = 8, STATE = 9;
const WELCOME = 16, TICK = 17, SEAT = 18, DESYNC = 19, PONG = 20, CLOCK = 21, ENDED = 22, ERROR = 23, UPDATE = 24, SNAPSHOT = 25, WANTED = 26;
const FRAME_BYTES_MAX = 64 * 1024, INPUT_BYTES_MAX = 512, SEATS_MAX = 64, NOBODY = 255;

/** The seats of a mask, from the lowest. */
export function seatsOf(mask: bigint): number[] {
  return Array.from({ length: SEATS_MAX }, (_, seat) => seat).filter((seat) => (mask >> BigInt(seat)) & 1n);
}

function wrong(why = "a field has a value that means nothing"): never { throw new Malformed(why); }

/** Whether a frame with this header acknowledges a tick. Of those more than 32 before `ack` it says nothing: they are taken for granted. */
export function acknowledges({ ack, missing }: Header, tick: number): boolean {
  const behind = ack - tick;
  return behind === 0 || behind > 32 || (behind > 0 && ((missing >>> (behind - 1)) & 1) === 0);
}

/** Reads numbers and bytes from the front of a frame. */
class Reader {
  #at = 0;
  constructor(readonly bytes: Uint8Array) {}
  left = () => this.bytes.length - this.#at;
  rest = () => this.take(this.left()).slice();
  byte = () => this.take(1)[0]!;
  word = <T>(words: readonly T[]): T => words[this.byte()] || wrong();
  fixed = (bytes: 4 | 8) => this.take(bytes).reduceRight((number, byte) => (number << 8n) | BigInt(byte), 0n);

  take(length: number): Uint8Array {
    if (length > this.left()) wrong("the frame ends too early");
    this.#at += length;
    return this.bytes.subarray(this.#at - length, this.#at);
  }

  /** LEB128, of 64 bits at most, written in the shortest way. */
  varint(): bigint {
    let number = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = this.byte();
      if (shift === 63n && byte > 1) wrong("a number is too large");
      number |= BigInt(byte & 0x7f) << shift;
      if (byte >= 0x80) continue;
      if (byte === 0 && shift > 0n) wrong("a number is not written in the shortest way");
      return number;
    }
  }

  u32(): number {
    const number = this.varint();
    if (number > 0xffff_ffffn) wrong("a number is too large");
    return Number(number);
  }
}

/** Cuts the first frame off a stream: the frame without its length, and what follows; nothing while it is not complete. */
export function cut(stream: Uint8Array): [Uint8Array, Uint8Array] | undefined {
  let end = 0;
  while (end < stream.length && stream[end]! >= 0x80 && end < 9) end++;
  if (end === stream.length) return undefined;
  const length = new Reader(stream.subarray(0, end + 1)).varint();
  if (length > FRAME_BYTES_MAX) wrong("the frame is longer than it may be");
  const behind = end + 1 + Number(length);
  return behind > stream.length ? undefined : [stream.subarray(end + 1, behind), stream.subarray(behind)];
}

/** Reads a frame of the server, without its length. */
export function read(bytes: Uint8Array): ServerFrame {
  const from = new Reader(bytes);
  const kind = from.u32();
  const tick = from.u32();
  const folded = from.varint();
  const ack = BigInt(tick) - ((folded >> 1n) ^ -(folded & 1n));
  if (ack < 0n || ack > 0xffff_ffffn) wrong("a number is too large");
  const frame = { tick, ack: Number(ack), missing: from.u32(), ...body(kind, from) } as ServerFrame;
  if (from.left() > 0) wrong("bytes follow the end of the frame");
  return frame;
}

function body(kind: number, from: Reader) {
  switch (kind) {
    case WELCOME: return { kind: "welcome", welcome: welcome(from) };
    case TICK: return { kind: "tick", ...inputs(from) };
    case SEAT: return { kind: "seat", seat: from.byte(), state: from.word(STATES) };
    case DESYNC: return { kind: "desync", minority: from.varint(), hash: Number(from.fixed(4)) };
    case PONG: return { kind: "pong", stamp: from.rest() };
    case CLOCK: return { kind: "clock", runs: from.word(["0", "1"]) === "1", seat: [from.byte()].find((seat) => seat !== NOBODY) };
    case ENDED: return { kind: "ended", reason: from.word(REASONS), seats: from.varint(), outcome: from.rest() };
    case ERROR: return { kind: "error", code: from.word(ERRORS), text: new TextDecoder().decode(from.rest()) };
    case UPDATE: return { kind: "update", update: from.rest() };
    case SNAPSHOT: return { kind: "snapshot", snapshot: from.rest() };
    case WANTED: return { kind: "wanted", whole: from.word(["0", "1"]) === "1" };
    default: wrong(`no frame is of kind ${kind}`);
  }
}

function welcome(from: Reader): Welcome {
  const [seat, seats, mode, runs, tickRate, inputDelay] = [from.byte(), from.byte(), from.word(MODES), from.byte(), from.byte(), from.byte()];
  const [present, inputBytesMax, holdMs, seed] = [from.varint(), from.u32(), from.u32(), from.fixed(8)];
  if (runs > 1 || seats > SEATS_MAX || (seat >= seats && seat !== NOBODY) || tickRate === 0) wrong();
  return { seat, seats, mode, runs: runs === 1, tickRate, inputDelay, present, inputBytesMax, holdMs, seed };
}

function inputs(from: Reader) {
  const [given, repeated, even] = [from.varint(), from.varint(), from.u32()];
  if (given & repeated) wrong();
  const inputs = new Map<number, Uint8Array>();
  for (const seat of seatsOf(given)) {
    const length = even === 0 ? from.u32() : even - 1;
    if (length > INPUT_BYTES_MAX) wrong("an input is longer than it may be");
    inputs.set(seat, from.take(length).slice());
  }
  return { given, repeated, inputs };
}

const varint = (number: number): number[] => (number < 0x80 ? [number] : [(number % 0x80) | 0x80, ...varint(Math.floor(number / 0x80))]);

/** A number of 32 bits in four bytes. */
export const u32 = (number: number): number[] => [0, 8, 16, 24].map((shift) => (number >>> shift) & 0xff);

function framed(kind: number, { tick = 0, ack = 0, missing = 0 }: Partial<Header>, payload: Iterable<number> = []): Uint8Array<ArrayBuffer> {
  const behind = tick >= ack ? 2 * (tick - ack) : 2 * (ack - tick) - 1;
  const frame = [kind, ...varint(tick), ...varint(behind), ...varint(missing), ...payload];
  return Uint8Array.from([...varint(frame.length), ...frame]);
}

/** Bytes of a part of a state. */
export const PART = 1900;
/** The hash by which states are compared where the server wants to have one: FNV-1a, 32 bits. */
export const fnv1a = (state: Uint8Array): number => state.reduce((hash, byte) => Math.imul(hash ^ byte, 0x0100_0193), 0x811c_9dc5) >>> 0;

/** What a client sends, each a frame with its length. */
export const write = {
  join: (have: number, token: string) => framed(JOIN, { tick: have }, new TextEncoder().encode(token)),
  /** Inputs of `header.tick`, and of the ticks before it, the newest first. */
  inputs: (header: Header, newestFirst: Uint8Array[]) =>
    framed(INPUTS, header, newestFirst.flatMap((input) => [...varint(input.length), ...input])),
  hash: (tick: number, hash: number) => framed(HASH, { tick }, u32(hash)),
  ping: (stamp: Iterable<number>) => framed(PING, {}, stamp),
  pause: () => framed(PAUSE, {}),
  resume: () => framed(CONTINUE, {}),
  forfeit: () => framed(FORFEIT, {}),
  /** The part of a state from `offset` on, of {@link PART} bytes or the rest. */
  snapshot: (tick: number, state: Uint8Array, offset: number) =>
    framed(STATE, { tick }, [...varint(offset), ...varint(state.length), ...state.subarray(offset, offset + PART)]),
  outcome: (tick: number, outcome: Uint8Array) => framed(OUTCOME, { tick }, outcome),
};
