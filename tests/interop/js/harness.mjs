// What the tests stand on: a server in a temporary folder, its HTTP API, and xmpp.js as a client.

import { spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { createWriteStream, existsSync, mkdtempSync, readFileSync, rmSync, watch } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { client, xml } from "@xmpp/client";
import { WebSocket } from "ws";

// Node has one of its own from version 22 on.
globalThis.WebSocket ??= WebSocket;

export { xml };
export const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
export const DEADLINE_MS = 20_000;
export const BINARY = process.env.CARILLON ?? join(ROOT, "target/debug/carillon");
let numbers = 0;

/** A name that no other test of this file uses. */
export const unique = (stem) => `${stem}${++numbers}`;

/** One process of the real binary, on free ports. Only ever ends the process that it started. */
export class Server {
  static async start(settings = {}) {
    const server = new Server();
    server.folder = mkdtempSync(join(tmpdir(), "carillon-"));
    const ready = join(server.folder, "ready.json");
    const data = join(server.folder, "data");
    const wanted = { data_dir: data, shards: 2, "c2s.port": 0, "c2s_tls.port": 0, "websocket.port": 0, "http.port": 0, ...settings };
    const sets = Object.entries(wanted).flatMap(([key, value]) => ["--set", `${key}=${value}`]);
    server.log = join(server.folder, "log");
    // Watched before there is anything to see.
    const watcher = watch(server.folder);
    server.process = spawn(BINARY, ["serve", "--ready-file", ready, ...sets], { stdio: ["ignore", "ignore", "pipe"] });
    server.process.stderr.pipe(createWriteStream(server.log));
    server.exit = once(server.process, "exit");
    const signal = AbortSignal.timeout(30_000);
    while (!existsSync(ready)) {
      const ended = server.exit.then(([code]) => { throw new Error(`the server ended with ${code}:\n${readFileSync(server.log)}`); });
      await Promise.race([once(watcher, "change", { signal }), ended]);
    }
    watcher.close();
    server.ports = JSON.parse(readFileSync(ready, "utf8"));
    server.key = readFileSync(join(data, "admin.key"), "utf8").trim();
    server.http = `http://127.0.0.1:${server.ports.http}`;
    server.websocket = `ws://127.0.0.1:${server.ports.websocket}/xmpp-websocket`;
    return server;
  }

  /** Asks it to end, and says what was wrong with its life. */
  async end() {
    this.process.kill("SIGTERM");
    const [code] = await within("the end of the server", this.exit);
    const log = readFileSync(this.log, "utf8");
    if (code !== 0 || log.includes("panicked") || log.includes(" ERROR ")) throw new Error(`the server ended with ${code}:\n${log}`);
    rmSync(this.folder, { recursive: true });
  }

  /** Kills it, as a crash would. */
  async kill() {
    this.process.kill("SIGKILL");
    await within("the death of the server", this.exit);
    rmSync(this.folder, { recursive: true });
  }

  async api(method, path, body) {
    const headers = { authorization: `Bearer ${this.key}`, ...(body === undefined ? {} : { "content-type": "application/json" }) };
    const answer = await fetch(this.http + path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text && JSON.parse(text);
  }

  /** A new account; its local part. */
  async account(stem = "user") {
    const user = unique(stem);
    await this.api("POST", "/v1/admin/accounts", { jid: user, password: "secret" });
    return user;
  }

  /** Reads a path until what is read is wanted. */
  async eventually(path, wanted) {
    const signal = AbortSignal.timeout(DEADLINE_MS);
    for (;;) {
      const seen = await this.api("GET", path);
      if (wanted(seen)) return seen;
      if (signal.aborted) throw new Error(`${path} was last ${JSON.stringify(seen)}`);
    }
  }
}

/** What is promised, or an error that says what did not come. */
export async function within(what, promise) {
  const signal = AbortSignal.timeout(DEADLINE_MS);
  const late = once(signal, "abort").then(() => { throw new Error(`not in time: ${what}`); });
  return Promise.race([promise, late]);
}

/** xmpp.js as one end of the conversation. */
export class Peer {
  constructor(server, user, { password = "secret", resource } = {}) {
    this.items = [];
    this.news = new EventEmitter();
    this.xmpp = client({ service: server.websocket, domain: "localhost", username: user, password, resource });
    this.xmpp.reconnect.stop();
    this.sent = [];
    this.errors = [];
    this.xmpp.on("error", (error) => this.errors.push(error));
    this.xmpp.on("send", (element) => this.sent.push(element));
    this.xmpp.on("stanza", (stanza) => {
      this.items.push(stanza);
      this.news.emit("item");
    });
  }

  static async connect(...args) {
    const peer = new Peer(...args);
    await within("the login", peer.xmpp.start());
    await peer.xmpp.send(xml("presence"));
    await peer.take((s) => s.is("presence") && s.attrs.from === peer.jid, "its own presence");
    return peer;
  }

  get jid() {
    return this.xmpp.jid.toString();
  }

  get bare() {
    return this.xmpp.jid.bare().toString();
  }

  chat(to, body) {
    return this.xmpp.send(xml("message", { to, type: "chat" }, xml("body", {}, body)));
  }

  ask(kind, payload, to) {
    return within("an answer", this.xmpp.iqCaller[kind](payload, to));
  }

  /** The next stanza that is wanted, among those here and those to come. */
  async take(wanted, what) {
    const signal = AbortSignal.timeout(DEADLINE_MS);
    for (;;) {
      const at = this.items.findIndex(wanted);
      if (at >= 0) return this.items.splice(at, 1)[0];
      try {
        await once(this.news, "item", { signal });
      } catch {
        throw new Error(`${what} did not come; there was: ${this.items.join("\n")}`);
      }
    }
  }

  message(body) {
    return this.take((s) => s.is("message") && s.getChildText("body") === body, `the message ${body}`);
  }

  /** The end of the connection. Not by `once` of node:events, which an "error" before it would reject. */
  disconnected() {
    return new Promise((resolve) => this.xmpp.once("disconnect", resolve));
  }

  /** Ends the session in good manners. */
  async end() {
    await within("the end of the session", this.xmpp.stop());
  }
}
