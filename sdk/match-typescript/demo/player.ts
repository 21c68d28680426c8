// A player's game: what is confirmed, and what is predicted from it until the server says more.

import { type Ended, type MatchOptions, Match } from "../src/index.js";
import { type Game, type Square, TICKS, begin, hash, step, winner } from "./tag.js";

/** How often states are compared, in ticks. */
const HASH_EVERY = 10;
/** How many hashes are remembered. */
const HASHES_MAX = 50;

/** Where a seat is taken, and by which right. */
export interface Seat {
  url: string;
  token: string;
}

export class Player {
  readonly match: Match;
  /** What all players have after the last tick. */
  confirmed: Game | undefined;
  /** The same, with the inputs that are under way. */
  predicted: Game | undefined;
  /** The hashes of the last ticks. */
  readonly hashes = new Map<number, number>();
  /** How often the server said something else than what was predicted. */
  corrections = 0;
  /** Hashes that were not alike. */
  desyncs = 0;
  /** What was sent for ticks that are not confirmed, and where it led. */
  readonly #sent = new Map<number, number>();
  readonly #expected = new Map<number, Square>();

  /** `held` says what the player wants now. */
  constructor(seat: Seat, readonly held: (player: Player) => number, told: Pick<MatchOptions, "onState" | "onSeat" | "onEnded" | "onError" | "onClock">) {
    this.match = new Match({
      ...seat,
      ...told,
      onJoined: ({ seed }) => (this.confirmed ??= begin(seed)),
      onTick: ({ tick, inputs }) => this.#tick(tick, inputs.map((input) => input?.[0] ?? 0)),
      onDesync: () => this.desyncs++,
    });
  }

  get seat(): number {
    return this.match.welcome?.seat ?? 0;
  }

  #tick(tick: number, inputs: number[]): void {
    // What comes behind the end does not count.
    if (!this.confirmed || this.confirmed.tick >= TICKS) return;
    this.confirmed = step(this.confirmed, inputs);
    this.#note(tick);
    const held = this.held(this);
    const sent = this.match.send(Uint8Array.of(held));
    // The client fills what lies between with the same.
    if (sent !== undefined) for (let of = sent; of > tick && !this.#sent.has(of); of--) this.#sent.set(of, held);
    this.#predict(inputs);
    if (tick === TICKS) this.match.finish(tick, new TextEncoder().encode(JSON.stringify({ winner: winner(this.confirmed) ?? null })));
  }

  #note(tick: number): void {
    const [now, own] = [hash(this.confirmed!), this.confirmed!.squares[this.seat]!];
    this.hashes.set(tick, now);
    this.hashes.delete(tick - HASHES_MAX);
    if (tick % HASH_EVERY === 0) this.match.hash(tick, now);
    const expected = this.#expected.get(tick);
    if (expected && (expected.x !== own.x || expected.y !== own.y)) this.corrections++;
    for (const of of this.#sent.keys()) if (of <= tick) this.#sent.delete(of);
    for (const of of this.#expected.keys()) if (of <= tick) this.#expected.delete(of);
  }

  /** Plays on from what is confirmed: own inputs as they were sent, the other's as its last one was. */
  #predict(inputs: number[]): void {
    let game = this.confirmed!;
    const last = Math.max(game.tick, ...this.#sent.keys());
    while (game.tick < last) {
      const all = inputs.map((input, seat) => (seat === this.seat ? this.#sent.get(game.tick + 1) ?? 0 : input));
      game = step(game, all);
      this.#expected.set(game.tick, game.squares[this.seat]!);
    }
    this.predicted = game;
  }
}

/** What came of the game, as this seat sees it. */
export function verdict(ended: Ended, seat: number): string {
  if (ended.reason === "finished") {
    const { winner } = JSON.parse(new TextDecoder().decode(ended.outcome) || "{}") as { winner?: number | null };
    if (winner === seat) return "You won.";
    return winner === null || winner === undefined ? "Nobody won." : "The other player won.";
  }
  if (ended.reason === "forfeit") return (ended.seats >> BigInt(seat)) & 1n ? "The other player left: you won." : "You gave up.";
  return { duration: "The time is over.", "not-joined": "The other player did not come.", shutdown: "The node ended.", module: "The game failed." }[ended.reason];
}
