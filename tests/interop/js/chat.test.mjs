// xmpp.js over WebSocket: as a browser's client would.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";

import { Peer, Server, unique, within, xml } from "./harness.mjs";

const PUBSUB = "http://jabber.org/protocol/pubsub";
let server;
const open = [];

before(async () => {
  server = await Server.start();
});
after(() => server.end());
afterEach(async () => {
  for (const peer of open.splice(0)) await peer.end();
});

async function connect(user, options) {
  const peer = await Peer.connect(server, user ?? (await server.account()), options);
  open.push(peer);
  return peer;
}

test("logs in by SASL2 and Bind 2", async () => {
  const user = await server.account();
  const peer = await connect(user);
  const authenticate = peer.sent.find((element) => element.is("authenticate", "urn:xmpp:sasl:2"));
  assert.equal(authenticate.attrs.mechanism, "SCRAM-SHA-1");
  assert.ok(authenticate.getChild("bind", "urn:xmpp:bind:0"));
  assert.equal(peer.bare, `${user}@localhost`);
  assert.equal(peer.xmpp.status, "online");
});

test("a wrong password is refused", async () => {
  const peer = new Peer(server, await server.account(), { password: "wrong" });
  await assert.rejects(within("the refusal", peer.xmpp.start()), (error) => error.condition === "not-authorized");
  await peer.xmpp.disconnect();
});

test("messages go both ways", async () => {
  const [alice, bob] = [await connect(), await connect()];
  await alice.chat(bob.bare, "ping? é 🔔 <&>");
  const question = await bob.message("ping? é 🔔 <&>");
  assert.equal(question.attrs.from, alice.jid);
  await bob.chat(question.attrs.from, "pong!");
  assert.equal((await alice.message("pong!")).attrs.from, bob.jid);
});

test("kept while away", async () => {
  const alice = await connect();
  const user = await server.account("bob");
  await alice.chat(`${user}@localhost`, "later");
  await alice.ask("get", xml("ping", "urn:xmpp:ping"), "localhost");
  const bob = await connect(user);
  assert.ok((await bob.message("later")).getChild("delay", "urn:xmpp:delay"));
});

test("comes back to its session", async () => {
  const [alice, bob] = [await connect(), await connect()];
  const jid = alice.jid;
  // It asks for an acknowledgement after a quarter of a second: this one it repeats.
  await alice.chat(bob.bare, "before");
  await bob.message("before");
  const { streamManagement, reconnect, socket } = alice.xmpp;
  const resumed = new Promise((resolve) => streamManagement.once("resumed", resolve));
  const cut = alice.disconnected();
  socket.socket.terminate();
  await within("the end of the connection", cut);
  await bob.chat(alice.bare, "meanwhile");
  await within("the new connection", reconnect.reconnect());
  await within("the old session", resumed);
  assert.equal(alice.jid, jid);
  await alice.message("meanwhile");
  await alice.chat(bob.bare, "after");
  await bob.message("after");
  assert.deepEqual(bob.items.map(String), [], "nothing twice, and nobody saw it go");
});

test("asks and is answered", async () => {
  const alice = await connect();
  await alice.ask("get", xml("ping", "urn:xmpp:ping"), "localhost");
  const info = await alice.ask("get", xml("query", "http://jabber.org/protocol/disco#info"), "localhost");
  assert.ok(info.getChildren("feature").length > 0);
  await assert.rejects(alice.ask("get", xml("query", "urn:example:unknown"), "localhost"), /service-unavailable/);
});

test("follows a topic", async () => {
  const [owner, fan] = [await connect(), await connect()];
  const node = unique("news");
  await owner.ask("set", xml("pubsub", PUBSUB, xml("create", { node })), "pubsub.localhost");
  await fan.ask("set", xml("pubsub", PUBSUB, xml("subscribe", { node, jid: fan.bare })), "pubsub.localhost");
  const item = xml("item", { id: "1" }, xml("entry", "http://www.w3.org/2005/Atom", xml("title", {}, "hello")));
  await owner.ask("set", xml("pubsub", PUBSUB, xml("publish", { node }, item)), "pubsub.localhost");
  const message = await fan.take((s) => s.is("message") && s.getChild("event", `${PUBSUB}#event`), "the item");
  const items = message.getChild("event", `${PUBSUB}#event`).getChild("items");
  assert.equal(items.attrs.node, node);
  assert.equal(items.getChild("item").getChild("entry").getChildText("title"), "hello");
  await server.api("POST", `/v1/topics/${node}/items`, { payload: { over: "HTTP" } });
  const json = await fan.take((s) => String(s).includes("urn:xmpp:json:0"), "the item over HTTP");
  const text = json.getChild("event").getChild("items").getChild("item").getChildText("json");
  assert.deepEqual(JSON.parse(text), { over: "HTTP" });
});

test("acknowledges a notification", async () => {
  const device = await connect();
  const sent = await server.api("POST", "/v1/notifications", { to: device.bare, payload: { n: 1 } });
  const message = await device.take((s) => s.attrs.id === sent.id, "the notification");
  assert.equal(message.attrs.from, "push.localhost");
  assert.deepEqual(JSON.parse(message.getChildText("json", "urn:xmpp:json:0")), { n: 1 });
  const trace = await server.eventually(`/v1/notifications/${sent.id}`, (seen) => seen.state === "acknowledged");
  assert.equal(trace.acknowledged_by, "stream-management");
});

test("is told when it is replaced", async () => {
  const user = await server.account();
  const first = await connect(user, { resource: "browser" });
  const disconnected = first.disconnected();
  const second = await connect(user, { resource: first.xmpp.jid.resource });
  // Under Bind 2 the resource is the tag and more, so that both may live; under classic binding the first one is replaced.
  if (second.jid === first.jid) {
    await within("the end of the first", disconnected);
    assert.equal(first.errors[0].condition, "conflict");
  } else {
    await first.ask("get", xml("ping", "urn:xmpp:ping"), "localhost");
  }
});

test("is told when an operator ends it", async () => {
  const peer = await connect();
  const disconnected = peer.disconnected();
  await server.api("DELETE", `/v1/admin/sessions/${encodeURIComponent(peer.jid)}`);
  await within("the end of the session", disconnected);
  assert.ok(peer.errors[0].condition);
});
