// The device, with a real node.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Refused, enrol, memory, webStorage } from "@carillon-im/device";

import { CARILLON_KEY, CARILLON_URL, admin, again, api, becomes, device, way } from "./environment.mjs";

test("a notification is given and acknowledged", async (t) => {
  const panel = await device(t);
  const waiting = await api.send(panel.enrolled.id, { payload: { n: 0 } });
  await panel.connect();
  assert.equal(panel.state, "online");
  const sent = await api.send(panel.enrolled.id, { payload: { n: 1 }, ttl: 60, priority: "high", collapse_key: "score" });
  const given = await panel.notifications.take(({ id }) => id === sent.id, "the notification");
  assert.deepEqual(given.payload, { n: 1 });
  assert.deepEqual([given.priority, given.collapseKey], ["high", "score"]);
  assert.equal(given.expiresAt - given.sentAt, 60_000);
  assert.equal((await becomes(sent.id, "acknowledged")).acknowledged_by, "stream-management");
  const xml = await api.send(panel.enrolled.id, { payload_xml: "<bell xmlns='urn:example:bell'>ding</bell>" });
  assert.match((await panel.notifications.take(({ id }) => id === xml.id, "an element")).xml, /^<bell.*ding/);
  assert.deepEqual(panel.notifications.all.map(({ id }) => id), [waiting.id, sent.id, xml.id]);
  await panel.disconnect();
  assert.deepEqual(panel.states.all, ["connecting", "online", "offline"]);
  assert.deepEqual(panel.errors.all, []);
});

test("topics", async (t) => {
  const panel = await device(t);
  const topic = `weather ${panel.enrolled.id}`;
  await api.createTopic(topic);
  await panel.connect();
  await panel.subscribe(topic);
  assert.deepEqual(await panel.subscriptions(), [topic]);
  const { id } = await api.publish(topic, { payload: { sky: "clear" } });
  const item = await panel.topics.take((event) => event.id === id, "the item");
  assert.deepEqual(item, { type: "item", topic, id, payload: { sky: "clear" } });
  await api.retract(topic, id);
  await panel.topics.take(({ type }) => type === "retracted", "the retraction");
  await panel.unsubscribe(topic);
  assert.deepEqual(await panel.subscriptions(), []);
  await panel.subscribe(topic);
  await api.deleteTopic(topic);
  await panel.topics.take((event) => event.type === "deleted" && event.topic === topic, "the end of the topic");
  await assert.rejects(panel.subscribe(topic), (error) => error.condition === "item-not-found");
});

test("the last item of a topic is not sent again to who has it", async (t) => {
  const store = memory();
  const first = await device(t, { store });
  const topics = ["old", "new"].map((stem) => `${stem} ${first.enrolled.id}`);
  for (const topic of topics) {
    await api.createTopic(topic);
    await api.subscribe(first.enrolled.id, topic);
    await api.publish(topic, { payload: 1, id: "first" });
  }
  await first.connect();
  for (const topic of topics) await first.topics.take((event) => event.topic === topic && event.publishedAt, "the last item");
  await first.disconnect();
  await api.publish(topics[1], { payload: 2, id: "second" });
  const second = again(t, first.enrolled, { store });
  await second.connect();
  await second.topics.take((event) => event.topic === topics[1], "the new item");
  // What is sent at login comes before what is sent later.
  const { id } = await api.send(first.enrolled.id, { payload: 0 });
  await second.notifications.take((one) => one.id === id, "what came later");
  assert.deepEqual(second.topics.all.map((event) => event.id), ["second"]);
});

test("it logs in with tokens, again and again, without its secret", async (t) => {
  const storage = { values: new Map(), getItem: (name) => storage.values.get(name) ?? null, setItem: (name, value) => storage.values.set(name, value) };
  const store = webStorage(storage, "device");
  const first = await device(t, { store });
  await first.connect();
  await first.disconnect();
  const { token } = store.load();
  assert.equal(token.mechanism, "HT-SHA-256-NONE");
  for (let login = 0; login < 3; login++) {
    const next = again(t, { jid: first.enrolled.jid }, { store });
    await next.connect();
    await next.disconnect();
  }
  // A token that is revoked, and no secret.
  await admin("DELETE", `/v1/admin/accounts/${first.enrolled.jid}/tokens`);
  const revoked = again(t, { jid: first.enrolled.jid }, { store });
  await assert.rejects(revoked.connect(), Refused);
  assert.equal(store.load().token, undefined);
  // With the secret it is given another.
  const restored = again(t, first.enrolled, { store });
  await restored.connect();
  assert.notEqual(store.load().token.token, token.token);
});

test("a session outlives a connection that is cut", async (t) => {
  const { url, ...path } = await way(t);
  const panel = await device(t, { url });
  const topic = `outlives ${panel.enrolled.id}`;
  await api.createTopic(topic);
  await panel.connect();
  await panel.subscribe(topic);
  const { jid } = panel;
  for (let cut = 0; cut < 3; cut++) {
    path.close();
    path.cut();
    await panel.states.take(() => panel.state === "waiting", "the loss of the connection");
    // A session that ended with its connection would get neither.
    const sent = await api.send(panel.enrolled.id, { payload: { cut }, audience: "connected" });
    const item = await api.publish(topic, { payload: { cut } });
    path.open();
    await panel.notifications.take(({ id }) => id === sent.id, "what came meanwhile");
    await panel.topics.take(({ id }) => id === item.id, "the item that came meanwhile");
    assert.equal((await becomes(sent.id, "acknowledged")).acknowledged_by, "stream-management");
    await panel.states.take(() => panel.state === "online", "the session");
    assert.equal(panel.jid, jid);
  }
  assert.deepEqual(panel.notifications.all.map(({ payload }) => payload.cut), [0, 1, 2]);
  assert.deepEqual(panel.topics.all.map(({ payload }) => payload.cut), [0, 1, 2]);
});

test("a session that cannot be resumed begins anew", async (t) => {
  const { url, ...path } = await way(t);
  const panel = await device(t, { url });
  await panel.connect();
  const { jid } = panel;
  path.close();
  path.cut();
  await panel.states.take(() => panel.state === "waiting", "the loss of the connection");
  await admin("DELETE", `/v1/admin/sessions/${encodeURIComponent(panel.enrolled.jid)}`);
  const sent = await api.send(panel.enrolled.id, { payload: 1 });
  path.open();
  await panel.notifications.take(({ id }) => id === sent.id, "what was stored meanwhile");
  // The client is the same (XEP-0388 user-agent), and so is its resource; what is new is the session.
  assert.equal(panel.jid, jid);
});

test("a receipt says that the handler has ended well", async (t) => {
  const { url, ...path } = await way(t);
  let failures = 0;
  const panel = await device(t, {
    url,
    acknowledge: "receipt",
    onNotification: async (one) => {
      if (failures++ === 0) throw new Error("the display is busy");
      panel.notifications.add(one);
    },
  });
  await panel.connect();
  const sent = await api.send(panel.enrolled.id, { payload: 1 });
  await panel.errors.take((error) => error.message === "the display is busy", "the failure");
  assert.equal((await api.notification(sent.id)).state, "sent");
  path.cut();
  await panel.notifications.take(({ id }) => id === sent.id, "the same again");
  assert.equal((await becomes(sent.id, "acknowledged")).acknowledged_by, "receipt");
  assert.equal(panel.notifications.all.length, 1);
});

test("nobody uses it", async (t) => {
  const panel = await device(t);
  await panel.connect();
  const state = async () => (await api.presence([panel.enrolled.id]))[0].state;
  const until = async (wanted) => {
    // An answer to the device says that what it sent before has been dealt with.
    await panel.subscriptions();
    assert.equal(await state(), wanted);
  };
  await until("active");
  await panel.setActive(false);
  await until("asleep");
  await panel.disconnect();
  await panel.connect();
  await until("asleep");
  await panel.setActive(true);
  await until("active");
});

test("a login that is refused", async (t) => {
  const { enrolled } = await device(t);
  const wrong = again(t, { ...enrolled, secret: "wrong" });
  await assert.rejects(wrong.connect(), Refused);
  assert.equal(wrong.state, "refused");
  const none = again(t, { jid: enrolled.jid });
  await assert.rejects(none.connect(), Refused);
  // One that is disabled while it is connected does not come back for ever.
  const disabled = again(t, enrolled);
  await disabled.connect();
  await api.disableDevice(enrolled.id);
  await disabled.states.take((state) => state === "refused", "the refusal");
  await api.enableDevice(enrolled.id);
  await disabled.connect();
});

test("a node that is not there is waited for", async (t) => {
  const { url, ...path } = await way(t);
  const panel = await device(t, { url });
  path.close();
  const connected = panel.connect();
  await panel.errors.take(() => panel.errors.all.length > 2, "three failures");
  path.open();
  await connected;
  const impatient = again(t, panel.enrolled, { url: "ws://127.0.0.1:1/" });
  const never = assert.rejects(impatient.connect(), /disconnected/);
  await impatient.errors.take(() => true, "a failure");
  await impatient.disconnect();
  await never;
  await assert.rejects(panel.connect(), /online/);
});

test("a connection that ends in the middle of a login", async (t) => {
  // From within the handshake of TLS to behind the login.
  const { url } = await way(t, { budgets: Array.from({ length: 10 }, (_, n) => 600 + n * 300) });
  const panel = await device(t, { url, longestWaitMs: 20 });
  await panel.connect();
  const { id } = await api.send(panel.enrolled.id, { payload: 1 });
  await panel.notifications.take((one) => one.id === id, "the notification");
  assert.ok(panel.states.all.filter((state) => state === "waiting").length > 3);
  assert.deepEqual(panel.errors.all.filter(({ name }) => name === "SASLError"), []);
});

test("enrolment has its errors", async () => {
  await assert.rejects(enrol({ url: CARILLON_URL, key: "crl_x" }), /unknown-key/);
  await assert.rejects(enrol({ url: CARILLON_URL, key: CARILLON_KEY, id: "no such id" }), /invalid/);
});
