// Strophe.js over WebSocket, which is what Converse.js logs in with: its newest version, and the last of the series before
// that. Both ask for a session after binding (RFC 3921 §3).

import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";

import * as strophe5 from "strophe.js";

import { DEADLINE_MS, Server, unique, within } from "./harness.mjs";

// Its build for Node is CommonJS.
const strophe3 = createRequire(import.meta.url)("strophe-3");
const PUBSUB = "http://jabber.org/protocol/pubsub";
let server;

before(async () => {
  server = await Server.start();
});
after(() => server.end());

/** A client of Strophe.js, and what it received. */
class Client {
  static async connect({ Strophe, $pres, $iq, $msg }, user, password = "secret") {
    const client = new Client();
    Object.assign(client, { $iq, $msg, stanzas: [], news: new EventEmitter() });
    client.connection = new Strophe.Connection(server.websocket, {});
    const keep = (stanza) => {
      client.stanzas.push(stanza);
      client.news.emit("stanza");
      return true;
    };
    client.connection.addHandler(keep, null, "message");
    client.ended = new Promise((resolve) => {
      client.resolveEnded = resolve;
    });
    const connected = new Promise((resolve, reject) => {
      client.connection.connect(`${user}@localhost`, password, (status, condition) => {
        if (status === Strophe.Status.CONNECTED) resolve();
        if (status === Strophe.Status.AUTHFAIL || status === Strophe.Status.CONNFAIL) {
          reject(new Error(`${Object.keys(Strophe.Status).find((key) => Strophe.Status[key] === status)}: ${condition}`));
        }
        if (status === Strophe.Status.DISCONNECTED) client.resolveEnded();
      });
    });
    await within("the login", connected);
    client.connection.send($pres());
    return client;
  }

  get jid() {
    return this.connection.jid;
  }

  get bare() {
    return this.jid.split("/")[0];
  }

  /** Asks, and waits for the answer. */
  ask(iq) {
    const answered = new Promise((resolve, reject) => this.connection.sendIQ(iq, resolve, (error) => reject(new Error(`${error}`))));
    return within("an answer", answered);
  }

  /** The next message that is wanted. */
  async take(wanted, what) {
    const signal = AbortSignal.timeout(DEADLINE_MS);
    for (;;) {
      const at = this.stanzas.findIndex(wanted);
      if (at >= 0) return this.stanzas.splice(at, 1)[0];
      await once(this.news, "stanza", { signal }).catch(() => {
        throw new Error(`${what} did not come; there was: ${this.stanzas.join("\n")}`);
      });
    }
  }

  chat(to, body) {
    this.connection.send(this.$msg({ to, type: "chat" }).c("body").t(body));
  }

  message(body) {
    return this.take((stanza) => text(stanza, "body") === body, `the message ${body}`);
  }

  async end() {
    this.connection.disconnect("done");
    await within("the end of the session", this.ended);
  }
}

/** The text of the first descendant of this name. */
const text = (stanza, name) => stanza.getElementsByTagName(name)[0]?.textContent;

for (const [name, strophe] of [["5.0", strophe5], ["3.0", strophe3]]) {
  test(`Strophe.js ${name} logs in, chats and follows a topic`, async () => {
    const [alice, bob] = await Promise.all([1, 2].map(async () => Client.connect(strophe, await server.account())));
    alice.chat(bob.bare, "ping? é <&>");
    const question = await bob.message("ping? é <&>");
    assert.equal(question.getAttribute("from"), alice.jid);
    bob.chat(alice.jid, "pong!");
    await alice.message("pong!");

    const node = unique("news");
    await server.api("PUT", `/v1/topics/${node}`, {});
    const subscribe = bob.$iq({ type: "set", to: "pubsub.localhost" }).c("pubsub", { xmlns: PUBSUB });
    await bob.ask(subscribe.c("subscribe", { node, jid: bob.bare }));
    await server.api("POST", `/v1/topics/${node}/items`, { payload: { over: "HTTP" } });
    const item = await bob.take((stanza) => stanza.getElementsByTagName("items")[0]?.getAttribute("node") === node, "the item");
    assert.deepEqual(JSON.parse(text(item, "json")), { over: "HTTP" });

    await alice.end();
    await bob.end();
  });

  test(`Strophe.js ${name} is told that a password is wrong`, async () => {
    await assert.rejects(Client.connect(strophe, await server.account(), "wrong"), /AUTHFAIL/);
  });
}
