// A player, with a real node.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Match, MatchError } from "@carillon-im/match";

import { Told, admin, way } from "../../device-typescript/test/environment.mjs";

const { CARILLON_WEBSOCKET } = process.env;
let numbers = 0;

async function post(method, path, body) {
  const headers = { authorization: `Bearer ${process.env.CARILLON_ADMIN_KEY}`, "content-type": "application/json" };
  const response = await fetch(process.env.CARILLON_URL + path, { method, headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${method} ${path}: ${await response.text()}`);
  return response.json();
}

/** The tokens of a new match, by seat. */
async function matched(config = {}) {
  const path = `/v1/matchmaking/sdk-${process.pid}-${++numbers}`;
  await post("PUT", path, { seats: 2, tick_rate: 30, ...config });
  const accounts = Array.from({ length: config.seats ?? 2 }, (_, n) => `player${process.pid}-${numbers}-${n}`);
  for (const account of accounts) await post("POST", path, { id: account, account });
  const tokens = [];
  for (const account of accounts) {
    let ticket;
    // A shard that is late takes no match for a while.
    do ticket = await admin("GET", `${path}/${account}`);
    while (ticket.state === "waiting");
    tokens[ticket.seating.seat] = ticket.seating.token;
  }
  return { tokens, path, accounts };
}

/** A player, with all that it is told; it sends `input` of the last tick in each tick. */
function player(t, token, { input = () => undefined, ...options } = {}) {
  const [ticks, seats, clocks, states, ends, errors, desyncs, rtts] = Array.from({ length: 8 }, () => new Told());
  const match = new Match({
    url: CARILLON_WEBSOCKET,
    token,
    onTick: (tick) => {
      const bytes = input(tick.tick);
      if (bytes) match.send(bytes);
      ticks.add(tick);
    },
    onSeat: (seat, state) => seats.add({ seat, state }),
    onClock: (runs, seat) => clocks.add({ runs, seat }),
    onState: (state) => states.add(state),
    onEnded: (ended) => ends.add(ended),
    onError: (error) => errors.add(error),
    onDesync: (desync) => desyncs.add(desync),
    onRtt: (rtt) => rtts.add(rtt),
    ...options,
  });
  t.after(() => match.disconnect());
  match.join();
  return Object.assign(match, { ticks, seats, clocks, states, ends, errors, desyncs, rtts });
}

const until = (one, tick) => one.ticks.take((seen) => seen.tick >= tick, `tick ${tick}`);
/** A tick as the players of a match have to agree on it. */
const essence = ({ tick, inputs, given, repeated }) => [tick, given, repeated, ...inputs.map((input) => (input ? Buffer.from(input).toString() : null))].join();

test("two players see the same ticks, and the end that both say", async (t) => {
  const { tokens, path, accounts } = await matched();
  const players = tokens.map((token, seat) => player(t, token, { input: (tick) => Buffer.from(`${seat}:${tick}`) }));
  for (const one of players) await until(one, 40);
  const [one, other] = players;
  assert.deepEqual([one.welcome.seat, other.welcome.seat, one.welcome.mode, one.welcome.tickRate], [0, 1, "lockstep", 30]);
  assert.equal(one.welcome.seed, other.welcome.seed);
  assert.deepEqual(one.ticks.all.slice(0, 40).map(essence), other.ticks.all.slice(0, 40).map(essence));
  assert.deepEqual(one.ticks.all.slice(0, 40).map(({ tick }) => tick), Array.from({ length: 40 }, (_, n) => n + 1));
  for (const seat of [0, 1]) {
    const own = one.ticks.all.filter(({ given }) => (given >> BigInt(seat)) & 1n).map(({ inputs }) => Buffer.from(inputs[seat]).toString());
    assert.ok(own.length > 20, `${own.length} inputs of seat ${seat}`);
    assert.ok(own.every((input) => input.startsWith(`${seat}:`)));
  }
  const rtt = await one.rtts.take(() => true, "a round trip");
  assert.ok(rtt.lastMs > 0 && rtt.smoothedMs > 0);
  for (const each of players) each.finish(40, Buffer.from('{"winner":1}'));
  for (const each of players) {
    const { reason, seats, outcome } = await each.ends.take(() => true, "the end");
    assert.deepEqual([reason, seats, Buffer.from(outcome).toString()], ["finished", 3n, '{"winner":1}']);
    assert.deepEqual(each.states.all, ["connecting", "joined", "over"]);
    assert.deepEqual(each.errors.all, []);
  }
  assert.equal((await admin("GET", `${path}/${accounts[0]}`)).state, "ended");
});

test("who is cut comes back by itself, with every tick", async (t) => {
  const { tokens } = await matched();
  const { url, ...path } = await way(t);
  const input = (tick) => Uint8Array.of(tick & 0xff);
  const [one, other] = [player(t, tokens[0], { input }), player(t, tokens[1], { input, url })];
  for (let cut = 1; cut <= 3; cut++) {
    await until(other, 10 * cut);
    path.close();
    path.cut();
    await one.seats.take(() => one.seats.all.filter(({ state }) => state === "away").length === cut, "the loss");
    const away = one.tick;
    await until(one, away + 10);
    path.open();
    await until(other, away + 10);
  }
  const last = Math.min(one.tick, other.tick);
  assert.deepEqual(other.ticks.all.slice(0, last).map(essence), one.ticks.all.slice(0, last).map(essence));
  assert.deepEqual(other.ticks.all.map(({ tick }) => tick), other.ticks.all.map((_, n) => n + 1));
  assert.deepEqual(other.states.all, ["connecting", "joined", "away", "joined", "away", "joined", "away", "joined"]);
  // What it sends after that counts again.
  const mark = Buffer.from("mark");
  await one.ticks.take(() => other.send(mark) || other.ticks.all.at(-1).inputs[1]?.equals?.(mark) || one.ticks.all.at(-1).inputs[1]?.length === 4, "its input");
});

test("a program that was started again goes on from a state that the others have", async (t) => {
  const { tokens } = await matched({ snapshot_ticks: 15, tick_rate: 60 });
  // The state of this game is how many inputs there were; it is written longer than a part.
  const game = (token) => {
    let count = 0;
    const one = player(t, token, {
      save: () => new Uint8Array(2000).fill(count & 0xff),
      onSnapshot: (snapshot, tick) => {
        count = snapshot[0];
        one.snapshots.add({ tick, count, length: snapshot.length });
      },
      onTick: (tick) => {
        one.send(Uint8Array.of(tick.tick & 0xff));
        count += tick.inputs.filter(Boolean).length;
        one.counts.add({ tick: tick.tick, count: count & 0xff });
        one.ticks.add(tick);
      },
    });
    return Object.assign(one, { snapshots: new Told(), counts: new Told() });
  };
  const [one, first] = [game(tokens[0]), game(tokens[1])];
  // Long enough for the ticks to be more than the state.
  await until(first, 700);
  first.disconnect();
  const second = game(tokens[1]);
  const { tick, length } = await second.snapshots.take(() => true, "a state");
  assert.equal(length, 2000);
  await until(second, tick + 20);
  assert.equal(second.ticks.all[0].tick, tick + 1);
  const other = await one.counts.take((seen) => seen.tick === tick + 20, "the same tick");
  assert.deepEqual(second.counts.all.find((seen) => seen.tick === tick + 20), other);
  assert.deepEqual([...one.desyncs.all, ...second.desyncs.all], []);
});

test("a program that was started again goes on from the first tick", async (t) => {
  const { tokens } = await matched();
  const input = (tick) => Uint8Array.of(tick & 0xff);
  const [one, first] = [player(t, tokens[0], { input }), player(t, tokens[1], { input })];
  await until(first, 60);
  first.disconnect();
  assert.equal(first.state, "away");
  await one.seats.take(({ state }) => state === "away", "the loss");
  const second = player(t, tokens[1], { input });
  await until(second, one.tick + 20);
  assert.deepEqual(second.ticks.all.slice(0, 60).map(essence), one.ticks.all.slice(0, 60).map(essence));
  // The ticks of the past did not make it send an input each.
  assert.ok(second.ticks.all.slice(-5).some(({ given }) => given & 2n), "its inputs are in time");
  // And the first one takes the seat from it.
  first.join();
  const error = await second.errors.take(() => true, "an error");
  assert.ok(error instanceof MatchError);
  assert.deepEqual([error.code, second.state], ["replaced", "over"]);
  await until(first, one.tick + 5);
  assert.deepEqual(first.ticks.all.map(({ tick }) => tick), first.ticks.all.map((_, n) => n + 1));
});

test("inputs that come late leave earlier", async (t) => {
  const { tokens } = await matched({ tick_rate: 60, input_delay: 1 });
  const { url } = await way(t, { delayMs: 80 });
  const input = (tick) => Uint8Array.of(tick & 0xff);
  const [one, slow] = [player(t, tokens[0], { input }), player(t, tokens[1], { input, url })];
  assert.ok(slow !== one);
  await slow.ticks.take(() => slow.lead >= 5, "inputs that leave earlier");
  const from = slow.tick + 30;
  await until(one, from + 60);
  const inTime = one.ticks.all.slice(from, from + 60).filter(({ given }) => given & 2n).length;
  assert.ok(inTime > 30, `${inTime} of 60 ticks have its input`);
  assert.ok(slow.rtt.smoothedMs > 80);
});

test("inputs are relayed in one order, and those that waited for the clock are not lost", async (t) => {
  const { tokens } = await matched({ mode: "relay" });
  const one = player(t, tokens[0]);
  await one.states.take((state) => state === "joined", "the seat");
  assert.deepEqual([1, 2].map((n) => one.send(Buffer.from(`early${n}`))), [1, 2]);
  const other = player(t, tokens[1]);
  await one.clocks.take(({ runs }) => runs, "the clock");
  for (let n = 0; n < 10; n++) for (const each of [one, other]) each.send(Buffer.from(`${n}`));
  for (const each of [one, other]) await until(each, 22);
  assert.deepEqual(one.ticks.all.map(essence), other.ticks.all.map(essence));
  const sent = (seat) => one.ticks.all.filter(({ inputs }) => inputs[seat]).map(({ inputs }) => Buffer.from(inputs[seat]).toString());
  assert.deepEqual(sent(0), ["early1", "early2", ...Array.from({ length: 10 }, (_, n) => `${n}`)]);
  assert.deepEqual(sent(1), Array.from({ length: 10 }, (_, n) => `${n}`));
});

test("the clock, hashes, and giving up", async (t) => {
  const { tokens } = await matched({ seats: 3 });
  const [one, other, third] = tokens.map((token) => player(t, token));
  await one.clocks.take(({ runs }) => runs, "the clock");
  other.pause();
  assert.equal((await one.clocks.take(({ runs }) => !runs, "the pause")).seat, 1);
  assert.equal(one.runs, false);
  other.resume();
  await one.clocks.take(({ runs, seat }) => runs && seat === 1, "the clock again");
  for (const each of [one, other, third]) await until(each, 5);
  for (const each of [one, other, third]) each.hash(5, each === third ? 7 : 0xffff_fff0);
  const desync = await other.desyncs.take(() => true, "the difference");
  assert.deepEqual([desync.tick, desync.minority, desync.hash], [5, 4n, 0xffff_fff0]);
  third.leave();
  assert.equal((await third.ends.take(() => true, "its end")).reason, "forfeit");
  await one.seats.take(({ seat, state }) => seat === 2 && state === "left", "that it left");
  assert.equal(one.state, "joined");
  const again = player(t, tokens[2]);
  assert.equal((await again.errors.take(() => true, "an error")).code, "left");
  other.leave();
  assert.deepEqual((await one.ends.take(() => true, "the end")).seats, 1n);
});

test("errors say what is wrong", async (t) => {
  const wrong = player(t, "no token");
  const error = await wrong.errors.take(() => true, "an error");
  assert.deepEqual([error.code, wrong.state], ["bad-token", "over"]);
  const { tokens } = await matched();
  const one = player(t, tokens[0]);
  await one.states.take((state) => state === "joined", "the seat");
  assert.throws(() => one.send(new Uint8Array(65)), RangeError);
  assert.equal(one.send(new Uint8Array(64)), 2);
});
