// The page of the demo: finding a match, playing it, losing the connection and coming back.

import type { Ended, MatchError } from "../src/index.js";
import { bot } from "./bot.js";
import { Drawing } from "./draw.js";
import { Player, type Seat, verdict } from "./player.js";
import { DOWN, LEFT, RIGHT, SIZE, TICKS, UP } from "./tag.js";
import { seat } from "./tickets.js";

const KEYS: Record<string, number> = { ArrowUp: UP, KeyW: UP, ArrowDown: DOWN, KeyS: DOWN, ArrowLeft: LEFT, KeyA: LEFT, ArrowRight: RIGHT, KeyD: RIGHT };
/** Where a page that is loaded again finds its seats. */
const KEPT = "carillon-demo-seats";
/** Closer than this to where the pointer is, a square stands. */
const NEAR = 6;

const find = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;
const [lobby, waiting, game] = [find("lobby"), find("waiting"), find("game")];
const [cut, back, leave] = [find<HTMLButtonElement>("cut"), find<HTMLButtonElement>("back"), find<HTMLButtonElement>("leave")];
const [said, figures, score] = [find("said"), find("figures"), find("score")];
const drawing = new Drawing(find<HTMLCanvasElement>("field"));
const showsConfirmed = find<HTMLInputElement>("confirmed");

let player: Player | undefined;
let robot: Player | undefined;
let search: AbortController | undefined;
let keys = 0;
let pointer: { x: number; y: number } | undefined;

function show(view: HTMLElement): void {
  for (const each of [lobby, waiting, game]) each.hidden = each !== view;
}

function say(text: string): void {
  if (said.textContent !== text) said.textContent = text;
}

/** What the player wants: keys, or the way to the pointer. */
function held({ predicted, confirmed, seat }: Player): number {
  const own = (predicted ?? confirmed)?.squares[seat];
  if (keys !== 0 || !pointer || !own) return keys;
  const [dx, dy] = [pointer.x - own.x - SIZE / 2, pointer.y - own.y - SIZE / 2];
  return (dx > NEAR ? RIGHT : dx < -NEAR ? LEFT : 0) | (dy > NEAR ? DOWN : dy < -NEAR ? UP : 0);
}

/** The sentence for where the match is. */
function situation({ match, confirmed, seat }: Player, others: Map<number, string>): string {
  if (match.state === "connecting") return "Taking the seat …";
  if (match.state === "away") return back.hidden ? "The connection was lost; coming back …" : "You are cut off. The match goes on, and your seat is held.";
  if ([...others.values()].includes("away")) return "The other player lost the connection; the seat is held for a while.";
  if (!match.runs) return "Waiting for the other player …";
  return confirmed?.it === seat ? "You are it: catch the other square." : "Run: the other square is it.";
}

function refresh(one: Player, others: Map<number, string>): void {
  const { match, confirmed, hashes } = one;
  if (match.state !== "over") say(situation(one, others));
  const [own, other] = [confirmed?.squares[one.seat]?.score ?? 0, confirmed?.squares[1 - one.seat]?.score ?? 0];
  const seconds = (ticks: number) => (ticks / 20).toFixed(1);
  score.textContent = `${seconds(own)} : ${seconds(other)}, ${Math.max(0, Math.ceil((TICKS - (confirmed?.tick ?? 0)) / 20))} s left`;
  const values = {
    tick: match.tick,
    rtt: match.rtt ? `${match.rtt.smoothedMs.toFixed(1)} ± ${match.rtt.variationMs.toFixed(1)} ms` : "",
    lead: `${match.lead} ticks`,
    corrections: one.corrections,
    state: one.desyncs > 0 ? "differs from the other's" : (hashes.get(match.tick) ?? 0).toString(16).padStart(8, "0"),
  };
  for (const [name, value] of Object.entries(values)) find(`figure-${name}`).textContent = `${value}`;
  figures.dataset["hashes"] = [...hashes].map(([tick, hash]) => `${tick}:${hash}`).join(" ");
  figures.dataset["own"] = JSON.stringify(confirmed?.squares[one.seat] ?? null);
  figures.dataset["connection"] = match.state;
}

function over(text: string): void {
  sessionStorage.removeItem(KEPT);
  for (const each of [cut, back, leave]) each.hidden = true;
  find("again").hidden = false;
  say(text);
}

function play(own: Seat, bots?: Seat): void {
  sessionStorage.setItem(KEPT, JSON.stringify([own, bots]));
  const others = new Map<number, string>();
  const one = new Player(own, held, {
    onState: () => refresh(one, others),
    onClock: () => refresh(one, others),
    onSeat: (seat, state) => {
      others.set(seat, state);
      refresh(one, others);
    },
    onEnded: (ended: Ended) => {
      refresh(one, others);
      over(verdict(ended, one.seat));
    },
    onError: (error: MatchError) => over(error.code === "replaced" ? "Another window took this seat." : `The match is over: ${error.message}.`),
  });
  player = one;
  robot = bots && new Player(bots, ({ confirmed, seat }) => (confirmed ? bot(confirmed, seat) : 0), {});
  find("again").hidden = true;
  [cut.hidden, back.hidden, leave.hidden] = [false, true, false];
  refresh(one, others);
  show(game);
  one.match.join();
  robot?.match.join();
  const frame = (now: number) => {
    if (player !== one) return;
    drawing.draw(one, now, showsConfirmed.checked);
    refresh(one, others);
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}

/** Looks for a match: with whoever opens the page, or with a bot at a table of its own. */
async function look(withBot: boolean): Promise<void> {
  const { signal } = (search = new AbortController());
  say("");
  show(waiting);
  try {
    const table = withBot ? crypto.randomUUID() : "open";
    const [own, bots] = await Promise.all([seat(table, signal), withBot ? seat(table, signal) : undefined]);
    signal.throwIfAborted();
    play(own, bots);
  } catch (error) {
    show(lobby);
    if (!signal.aborted) say(error instanceof Error ? error.message : String(error));
  }
}

function hold(bit: number | undefined, isDown: boolean, event: KeyboardEvent): void {
  if (!bit || event.ctrlKey || event.metaKey || event.altKey || game.hidden) return;
  keys = isDown ? keys | bit : keys & ~bit;
  event.preventDefault();
}

addEventListener("keydown", (event) => hold(KEYS[event.code], true, event));
addEventListener("keyup", (event) => hold(KEYS[event.code], false, event));
addEventListener("blur", () => ([keys, pointer] = [0, undefined]));
addEventListener("pagehide", () => search?.abort());
for (const kind of ["pointerdown", "pointermove"] as const) {
  drawing.canvas.addEventListener(kind, (event) => {
    if (event.buttons === 0) return;
    drawing.canvas.setPointerCapture(event.pointerId);
    pointer = drawing.at(event);
  });
}
for (const kind of ["pointerup", "pointercancel"] as const) drawing.canvas.addEventListener(kind, () => (pointer = undefined));
find("play").addEventListener("click", () => void look(false));
find("play-bot").addEventListener("click", () => void look(true));
find("stop").addEventListener("click", () => {
  search?.abort();
  show(lobby);
});
cut.addEventListener("click", () => {
  [cut.hidden, back.hidden, leave.hidden] = [true, false, true];
  player?.match.disconnect();
});
back.addEventListener("click", () => {
  [cut.hidden, back.hidden, leave.hidden] = [false, true, false];
  player?.match.join();
});
leave.addEventListener("click", () => player?.match.leave());
find("again").addEventListener("click", () => {
  player = robot = undefined;
  say("");
  show(lobby);
});

const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? "null") as [Seat, Seat?] | null;
if (kept) play(kept[0], kept[1] ?? undefined);
else show(lobby);
