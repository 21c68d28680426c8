// Where the node of the test run is, a sender, and a connection that can be cut.

import { once } from "node:events";
import { connect, createServer } from "node:net";

import { Device, enrol } from "@carillon-im/device";
import { Client } from "@carillon-im/sender";
import { WebSocket } from "ws";

// Node has one of its own from version 22 on.
globalThis.WebSocket ??= WebSocket;

export const { CARILLON_URL, CARILLON_KEY, CARILLON_ADMIN_KEY, CARILLON_WEBSOCKET } = process.env;
export const DEADLINE_MS = 20_000;
export const api = new Client({ url: CARILLON_URL, key: CARILLON_KEY });

/** What an operator asks the node. */
export async function admin(method, path) {
  const response = await fetch(CARILLON_URL + path, { method, headers: { authorization: `Bearer ${CARILLON_ADMIN_KEY}` } });
  if (!response.ok) throw new Error(await response.text());
  return response.status === 204 ? undefined : response.json();
}

/** What is told, to be waited for. */
export class Told {
  #waiting = [];
  all = [];

  add(value) {
    this.all.push(value);
    for (const check of this.#waiting) check();
  }

  /** The first value that is wanted, among those here and those to come. */
  take(wanted, what) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`${what} did not come; there was ${JSON.stringify(this.all)}`)), DEADLINE_MS);
      const check = () => {
        const found = this.all.find(wanted);
        if (found === undefined) return;
        clearTimeout(timer);
        this.#waiting = this.#waiting.filter((one) => one !== check);
        resolve(found);
      };
      this.#waiting.push(check);
      check();
    });
  }
}

/** A device that was just enrolled, with all that it is told; it ends with the test. */
export async function device(test, options = {}) {
  const enrolled = await enrol({ url: CARILLON_URL, key: CARILLON_KEY });
  return again(test, enrolled, options);
}

/** Another program of an enrolled device. */
export function again(test, enrolled, options = {}) {
  const [notifications, topics, states, errors] = [new Told(), new Told(), new Told(), new Told()];
  const made = new Device({
    jid: enrolled.jid,
    secret: enrolled.secret,
    url: CARILLON_WEBSOCKET,
    onNotification: (one) => notifications.add(one),
    onTopic: (one) => topics.add(one),
    onState: (one) => states.add(one),
    onError: (one) => errors.add(one),
    firstWaitMs: 10,
    ...options,
  });
  test.after(() => made.disconnect());
  return Object.assign(made, { enrolled, notifications, topics, states, errors });
}

/** A way to the node that can be cut, and closed for a while, and takes so long. Its first connections end after so many bytes of the node. */
export async function way(test, { budgets = [], delayMs = 0 } = {}) {
  const left = [...budgets];
  const target = new URL(CARILLON_WEBSOCKET);
  const open = new Set();
  const server = createServer((client) => {
    if (server.isClosed) return client.destroy();
    const node = connect(target.port, target.hostname);
    let budget = left.shift() ?? Number.POSITIVE_INFINITY;
    node.on("data", (bytes) => {
      budget -= bytes.length;
      if (budget < 0) client.destroy();
    });
    for (const [one, other] of [[client, node], [node, client]]) {
      open.add(one);
      if (delayMs === 0) one.pipe(other);
      else one.on("data", (bytes) => setTimeout(() => other.write(bytes), delayMs / 2));
      one.on("error", () => {});
      one.on("close", () => {
        open.delete(one);
        other.destroy();
      });
    }
  });
  server.listen(0, target.hostname);
  await once(server, "listening");
  const cut = () => open.forEach((one) => one.destroy());
  // Its connections end with those who use it.
  test.after(() => server.close());
  return {
    url: `wss://localhost:${server.address().port}${target.pathname}`,
    cut,
    close: () => { server.isClosed = true; },
    open: () => { server.isClosed = false; },
  };
}

/** Asks until a notification is in a state; its trace. */
export async function becomes(id, state) {
  const signal = AbortSignal.timeout(DEADLINE_MS);
  for (;;) {
    const trace = await api.notification(id);
    if (trace.state === state) return trace;
    if (signal.aborted) throw new Error(`the notification was last ${JSON.stringify(trace)}`);
  }
}
