// xmpp.js in a room (XEP-0045), over WebSocket: it has no plugin for that, so its stanzas are written as a client's would be.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";

import { Peer, Server, unique, xml } from "./harness.mjs";

const MUC = "http://jabber.org/protocol/muc";
let server;
const open = [];

before(async () => {
  server = await Server.start();
});
after(() => server.end());
afterEach(async () => {
  for (const peer of open.splice(0)) await peer.end();
});

async function connect() {
  const peer = await Peer.connect(server, await server.account());
  open.push(peer);
  return peer;
}

const codes = (presence) => (presence.getChild("x", `${MUC}#user`)?.getChildren("status") ?? []).map((status) => status.attrs.code);

/** Enters a room; what is given until the subject, which comes last. */
async function enter(peer, room, nick, history = {}) {
  const given = [];
  await peer.xmpp.send(xml("presence", { to: `${room}/${nick}` }, xml("x", MUC, xml("history", history))));
  const isOfRoom = (stanza) => stanza.attrs.from?.startsWith(room);
  for (;;) {
    given.push(await peer.take(isOfRoom, `what ${nick} is given who enters ${room}`));
    const last = given.at(-1);
    if (last.is("message") && last.getChild("subject")) return given;
    assert.notEqual(last.attrs.type, "error", String(last));
  }
}

test("enters a room, is given what was said, speaks and leaves", async () => {
  const [alice, bob] = [await connect(), await connect()];
  const room = `${unique("room")}@rooms.localhost`;
  const made = await enter(alice, room, "Ali");
  assert.deepEqual(codes(made[0]), ["110", "170", "201"], "it is new, and she is in it");
  const form = xml("x", { xmlns: "jabber:x:data", type: "submit" });
  await alice.ask("set", xml("query", `${MUC}#owner`, form), room);
  await alice.xmpp.send(xml("message", { to: room, type: "groupchat", id: "m1" }, xml("body", {}, "before 🍵")));
  const kept = (await alice.message("before 🍵")).getChild("stanza-id", "urn:xmpp:sid:0");

  const given = await enter(bob, room, "Bob");
  const [others, own, said] = given;
  assert.equal(others.attrs.from, `${room}/Ali`);
  assert.deepEqual([own.attrs.from, codes(own)], [`${room}/Bob`, ["110", "170"]]);
  assert.equal(said.getChildText("body"), "before 🍵");
  assert.ok(said.getChild("delay", "urn:xmpp:delay"), "it was said before");
  assert.equal(said.getChild("stanza-id", "urn:xmpp:sid:0").attrs.id, kept.attrs.id, "its number is that of the archive");
  assert.equal(given.length, 4, "and the subject");
  await alice.take((s) => s.is("presence") && s.attrs.from === `${room}/Bob`, "Bob's presence");

  await bob.xmpp.send(xml("message", { to: room, type: "groupchat", id: "m2" }, xml("body", {}, "hello")));
  for (const peer of [alice, bob]) assert.equal((await peer.message("hello")).attrs.from, `${room}/Bob`);

  await bob.xmpp.send(xml("presence", { to: `${room}/Bob`, type: "unavailable" }));
  for (const peer of [alice, bob]) {
    const gone = await peer.take((s) => s.is("presence") && s.attrs.type === "unavailable", "Bob leaves");
    assert.equal(gone.attrs.from, `${room}/Bob`);
    assert.equal(codes(gone).includes("110"), peer === bob);
  }
  await alice.xmpp.send(xml("message", { to: room, type: "groupchat" }, xml("body", {}, "without Bob")));
  await alice.message("without Bob");
  await bob.ask("get", xml("ping", "urn:xmpp:ping"), "localhost");
  assert.ok(!bob.items.some((s) => s.is("message")), "who has left is told nothing");
});

test("finds the avatar of a room", async () => {
  const [alice, bob] = [await connect(), await connect()];
  const room = `${unique("room")}@rooms.localhost`;
  await enter(alice, room, "Ali");
  await alice.ask("set", xml("query", `${MUC}#owner`, xml("x", { xmlns: "jabber:x:data", type: "submit" })), room);
  const photo = xml("PHOTO", {}, xml("TYPE", {}, "image/png"), xml("BINVAL", {}, "dGVh"));
  await alice.ask("set", xml("vCard", "vcard-temp", photo), room);
  const [avatar] = await enter(bob, room, "Bob");
  assert.equal(avatar.attrs.from, room);
  const hash = avatar.getChild("x", "vcard-temp:x:update").getChildText("photo");
  assert.equal(hash, "75490f32c06a50051804339453d3fe2f0cd5564b", "the SHA-1 of its bytes");
  const card = await bob.ask("get", xml("vCard", "vcard-temp"), room);
  assert.equal(card.getChild("PHOTO").getChildText("BINVAL"), "dGVh");
});
