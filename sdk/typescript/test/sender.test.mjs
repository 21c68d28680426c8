// The client in TypeScript, with a real node.

import assert from "node:assert/strict";
import { test } from "node:test";

import { ApiError, Client, NoAnswer } from "@carillon-im/sender";

import { CARILLON_URL, FAST, all, connect, first, unique } from "./environment.mjs";

const PAYLOAD = { title: "Your order has shipped" };
const api = connect();
const refused = (code) => (error) => error instanceof ApiError && error.code === code;

test("a notification is sent and followed", async () => {
  const events = await api.events({ states: ["acknowledged"] });
  const sent = await api.send("alice", { payload: PAYLOAD, ttl: 60, priority: "high" });
  const receipt = await first(events, (event) => event.notification.id === sent.id);
  assert.equal(receipt.id, events.lastId);
  const trace = await api.notification(sent.id);
  assert.deepEqual(trace, receipt.notification);
  assert.equal(trace.acknowledged_by, "stream-management");
  assert.ok(await first(api.notifications({ to: "alice", states: ["acknowledged"] }), ({ id }) => id === sent.id));
  await assert.rejects(api.cancel(sent.id), (error) => refused("too-late")(error) && error.problem.state === "acknowledged");
});

test("a list has a result for each", async () => {
  const { results } = await api.send(["alice", "no such device"], { payload: PAYLOAD });
  assert.ok(results[0].id);
  assert.equal(results[1].error.code, "invalid-jid");
});

test("a refusal has its problem", async () => {
  await assert.rejects(api.send("alice", { payload: PAYLOAD, ttl: 0 }), (error) => {
    assert.deepEqual([error.status, error.code, error.pointer], [422, "invalid-value", "/ttl"]);
    return error instanceof ApiError && error.message.includes(error.requestId);
  });
});

test("many are sent and listed", async () => {
  const { id } = await api.enrol();
  function* wanted() {
    for (let n = 0; n < 1200; n++) yield { to: n === 700 ? "no such device" : id, payload: { n } };
  }
  const results = await all(api.sendMany(wanted()));
  assert.deepEqual(results.map(({ line }) => line), Array.from({ length: 1200 }, (_, n) => n + 1));
  assert.deepEqual(results.filter(({ error }) => error).map(({ line }) => line), [701]);
  const listed = await all(api.notifications({ to: id }));
  assert.deepEqual(new Set(listed.map((one) => one.id)), new Set(results.flatMap((one) => one.id ?? [])));
  assert.equal(listed.length, 1199);
});

test("lost answers do not send twice", async () => {
  const { id } = await api.enrol();
  const faulty = connect(["cut", "half"]);
  await faulty.send(id, { payload: PAYLOAD });
  const seen = await faulty.seen();
  assert.equal(seen.length, 3);
  assert.equal(new Set(seen.map((one) => one.idempotency_key)).size, 1);
  const batch = connect(["half", "cut", "ok", "busy:0"]);
  const results = await all(batch.sendMany(Array.from({ length: 600 }, (_, n) => ({ to: id, payload: n }))));
  assert.equal(new Set(results.map((one) => one.id)).size, 600);
  const keys = (await batch.seen()).map((one) => one.idempotency_key);
  assert.deepEqual([...new Set(keys)].map((key) => keys.filter((one) => one === key).length), [3, 2]);
  assert.equal((await api.device(id)).pending, 601);
});

test("a key of one's own outlives the client", async () => {
  const { id } = await api.enrol();
  const again = { idempotencyKey: `order-${id}` };
  for (let life = 0; life < 2; life++) {
    await all(connect().sendMany([1, 2, 3].map((n) => ({ to: id, payload: n })), again));
    await connect().send(id, { payload: PAYLOAD }, { idempotencyKey: `one-${id}` });
  }
  assert.equal((await api.device(id)).pending, 4);
});

test("it comes back when it is asked to, and gives up in the end", async () => {
  const faulty = connect(["busy:1", "unavailable"]);
  await faulty.send("alice", { payload: PAYLOAD });
  const [one, two, ...more] = (await faulty.seen()).map(({ at }) => at);
  assert.ok(two - one >= 1);
  assert.equal(more.length, 1);
  const down = connect(Array(9).fill("unavailable"));
  await assert.rejects(all(down.topics()), refused("unavailable"));
  assert.equal((await down.seen()).length, 4);
  const patient = connect(["busy:100"]);
  await assert.rejects(patient.ownKey(), (error) => error.retryAfterMs === 100_000);
  assert.equal((await patient.seen()).length, 1);
});

test("what is not safe is not repeated", async () => {
  const { id } = await api.enrol();
  for (const attempt of [(c) => c.enrol(), (c) => c.rotateSecret(id), (c) => c.createInvitation()]) {
    for (const [fault, kind] of [["cut", NoAnswer], ["busy:0", ApiError]]) {
      const faulty = connect([fault]);
      await assert.rejects(attempt(faulty), (error) => error instanceof kind);
      assert.equal((await faulty.seen()).length, 1);
    }
  }
});

test("a node that is silent, and one that is not there", async () => {
  const faulty = connect(["hang"], { timeoutMs: 300 });
  const began = performance.now();
  assert.equal((await faulty.ownKey()).name, "sdk");
  assert.ok(performance.now() - began >= 290);
  assert.equal((await faulty.seen()).length, 2);
  const nobody = new Client({ url: "http://127.0.0.1:1", key: "crl_x", retry: FAST });
  await assert.rejects(nobody.ownKey(), NoAnswer);
  await assert.rejects(nobody.events(), NoAnswer);
});

test("topics", async () => {
  const name = unique("weather / é");
  assert.equal((await api.createTopic(name, { title: "Weather", max_items: 2 })).config.max_items, 2);
  assert.equal((await api.updateTopic(name, { max_items: 3, title: null })).config.title, "");
  await assert.rejects(api.createTopic(name, { max_items: 9 }), refused("already-exists"));
  const { id } = await api.enrol();
  await api.subscribe(id, name);
  assert.deepEqual(await api.subscriptions(id), [name]);
  assert.deepEqual(await all(api.subscribers(name)), [`${id}@localhost`]);
  const published = await connect(["cut"]).publish(name, { payload: { sky: "clear" } });
  await api.publish(name, { payload: { sky: "rain" }, id: "latest" });
  assert.deepEqual((await api.items(name)).map((item) => item.id), ["latest", published.id]);
  assert.deepEqual((await api.items(name, { id: "latest" }))[0].payload, { sky: "rain" });
  await api.retract(name, "latest");
  await api.unsubscribe(id, name);
  assert.ok((await api.topic(name)).figures.published >= 2);
  assert.ok((await all(connect([], { pageSize: 1 }).topics())).some((topic) => topic.name === name));
  const faulty = connect(["cut"]);
  await faulty.deleteTopic(name);
  assert.equal((await faulty.seen()).length, 2);
  await assert.rejects(api.deleteTopic(name), refused("unknown-topic"));
});

test("devices", async () => {
  const { id, endpoints } = await api.enrol({ id: unique("panel"), secret: "correct horse battery" });
  assert.ok(endpoints.websocket_url);
  assert.ok((await api.validateSecret(id, "correct horse battery")).valid);
  await api.disableDevice(id);
  assert.equal((await api.device(id)).state, "disabled");
  await api.enableDevice(id);
  assert.notEqual((await api.rotateSecret(id)).secret, "correct horse battery");
  assert.ok((await all(connect([], { pageSize: 2 }).devices())).some((device) => device.id === id));
  assert.deepEqual((await api.presence(["alice", id])).map((one) => one.state), ["active", "offline"]);
  await api.deleteDevice(id);
  await assert.rejects(api.device(id), refused("unknown-device"));
});

test("invitations and links", async () => {
  const invitation = await api.createInvitation({ localpart: unique("dora") });
  assert.ok((await all(api.invitations())).some(({ id }) => id === invitation.id));
  await api.deleteInvitation(invitation.id);
  const url = `https://example.com/${unique("offer")}`;
  const link = await api.createLink(url, { may_change: true, expires_at: new Date("2099-09-01T10:00:00Z") });
  assert.deepEqual(await api.createLink(url), link);
  assert.equal((await api.updateLink(link.code, { url: `${url}/2`, expires_at: null })).url, `${url}/2`);
  assert.deepEqual((await all(api.links({ search: url }))).map(({ code }) => code), [link.code]);
  await api.deleteLink(link.code);
  assert.ok((await api.link(link.code)).removed_at);
});

test("events go on behind the last one", async () => {
  const { id: device } = await api.enrol();
  const faulty = connect(["event", "cut", "busy:0", "event"]);
  const events = await faulty.events({ states: ["cancelled"] });
  const ids = [];
  for (let n = 0; n < 4; n++) ids.push((await api.send(device, { payload: n })).id);
  for (const id of ids) await api.cancel(id);
  const given = [];
  while (given.length < 4) given.push((await events.next()).value);
  await events.return();
  assert.deepEqual(given.map(({ notification }) => notification.id), ids);
  const asked = (await faulty.seen()).map((one) => one.last_event_id);
  assert.deepEqual(asked.slice(0, 4), [null, ...Array(3).fill(String(given[0].id))]);
  const next = await api.events({ states: ["cancelled"], after: given[2].id });
  assert.deepEqual((await next.next()).value, given[3]);
  await next.return();
});

test("gaps, refusals and the caller's signal", async () => {
  const { lastId } = await api.events().then((events) => events.return().then(() => events));
  const behind = await api.events({ after: lastId + 1000 });
  assert.deepEqual((await behind.next()).value, { type: "gap", after: lastId + 1000, next: lastId + 1 });
  await behind.return();
  await assert.rejects(api.events({ states: ["no such state"] }), refused("invalid-parameter"));
  await assert.rejects(new Client({ url: CARILLON_URL, key: "crl_x" }).events(), refused("unknown-key"));
  const stop = new AbortController();
  const events = await api.events({ states: ["expired"], signal: stop.signal });
  const end = assert.rejects(events.next(), /enough/);
  stop.abort(new Error("enough"));
  await end;
});
