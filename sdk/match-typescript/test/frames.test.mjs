// The frames, as every client of the repository has to write and read them.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { acknowledges, cut, read, seatsOf, write } from "../dist/frames.js";

const text = readFileSync(new URL("../../../crates/wire/src/frame/game/vectors.txt", import.meta.url), "utf8");
const vectors = text.split("\n").filter((line) => line && !line.startsWith("#")).map((line) => {
  const [side, hex, name, ...fields] = line.split(" ");
  return { side, hex, name, fields: Object.fromEntries(fields.map((field) => field.split(/=(.*)/s))), text: fields.join(" ") };
});
const of = (side) => vectors.filter((vector) => vector.side === side);
const hex = (bytes) => Buffer.from(bytes).toString("hex");
const bytes = (text) => Uint8Array.from(Buffer.from(text, "hex"));
const WORDS = {
  mode: ["relay", "lockstep", "authoritative"],
  state: ["away", "here", "left"],
  reason: ["finished", "forfeit", "duration", "not-joined", "shutdown", "module"],
  code: ["", "malformed", "too-long", "bad-token"],
};

/** What is in a frame of the server, as the vectors write it. */
function shown({ kind, tick, ack, missing, ...rest }) {
  const snake = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  const value = (name, value) => {
    if (value instanceof Map) return [...value].map(([seat, input]) => `${seat}:${hex(input)}`).join(",");
    if (value instanceof Uint8Array) return hex(value);
    if (name === "seat") return value ?? 255;
    if (name === "text") return hex(Buffer.from(value));
    return WORDS[name] ? WORDS[name].indexOf(value) : Number(value) === value || typeof value === "bigint" ? value : Number(value);
  };
  const order = ["seat", "seats", "mode", "runs", "tickRate", "inputDelay", "present", "inputBytesMax", "holdMs", "seed"];
  const fields = rest.welcome ? order.map((name) => [name, rest.welcome[name]]) : Object.entries(rest);
  return [["tick", tick], ["ack", ack], ["missing", missing], ...fields].map(([name, one]) => `${snake(name)}=${value(name, one)}`).join(" ");
}

test("frames of the server are read", () => {
  assert.ok(of("server").length > 8);
  for (const vector of of("server")) {
    const [frame, rest] = cut(bytes(vector.hex));
    assert.equal(rest.length, 0);
    const found = read(frame);
    assert.deepEqual([found.kind, shown(found)], [vector.name, vector.text]);
  }
});

test("what is no frame of a server is refused", () => {
  for (const { hex, name } of of("bad")) assert.throws(() => read(cut(bytes(hex))[0]), { name: "Malformed" }, name);
  for (const { hex } of of("server")) {
    const [frame] = cut(bytes(hex));
    for (let length = 0; length < frame.length; length++) {
      // What ends in bytes of any length may be shorter; that is all that may be read of a part.
      if (![20, 22, 23, 24, 25].includes(frame[0])) assert.throws(() => read(frame.subarray(0, length)), { name: "Malformed" });
    }
  }
});

test("frames of the client are written", () => {
  const written = {
    join: ({ have, token }) => write.join(Number(have), Buffer.from(token, "hex").toString()),
    inputs: ({ tick, ack, missing, inputs }) => write.inputs({ tick: +tick, ack: +ack, missing: +missing }, inputs.split(",").map(bytes)),
    hash: ({ tick, hash }) => write.hash(+tick, +hash),
    ping: ({ stamp }) => write.ping(bytes(stamp)),
    pause: write.pause,
    continue: write.resume,
    forfeit: write.forfeit,
    snapshot: ({ tick, offset, total, part }) => {
      const state = new Uint8Array(+total);
      state.set(bytes(part), +offset);
      return write.snapshot(+tick, state, +offset);
    },
    outcome: ({ tick, outcome }) => write.outcome(+tick, bytes(outcome)),
  };
  for (const vector of of("client")) assert.equal(hex(written[vector.name](vector.fields)), vector.hex, vector.name);
});

test("a stream is cut wherever it is divided", () => {
  const stream = bytes(of("server").map((vector) => vector.hex).join(""));
  for (let at = 0; at < stream.length; at++) {
    let [frames, rest] = [[], new Uint8Array()];
    for (const part of [stream.subarray(0, at), stream.subarray(at)]) {
      rest = Buffer.concat([rest, part]);
      for (let found; (found = cut(rest)); rest = found[1]) frames.push(hex(found[0]));
    }
    assert.equal(rest.length, 0);
    assert.deepEqual(frames, of("server").map((vector) => vector.hex.slice(2)));
  }
});

test("masks and acknowledgements", () => {
  assert.deepEqual(seatsOf((1n << 63n) | 5n), [0, 2, 63]);
  const header = { ack: 40, missing: 0b101 | 0x8000_0000 };
  const there = [41, 40, 39, 38, 37, 8, 7].map((tick) => acknowledges(header, tick));
  assert.deepEqual(there, [false, true, false, true, false, false, true]);
});
