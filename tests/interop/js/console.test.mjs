// The console in a real browser: an operator signs in, looks, and sends.

import assert from "node:assert/strict";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { chromium } from "playwright-core";

import { DEADLINE_MS, Peer, ROOT, Server, unique, xml } from "./harness.mjs";

const EXECUTABLE = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(
  (path) => path && existsSync(path),
);
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const OUT = join(ROOT, "target/interop");
let server, browser;

before(async () => {
  server = await Server.start();
  // A fresh profile each time: the browser's own folder is a temporary one.
  browser = await chromium.launch({ executablePath: EXECUTABLE, headless: true, args: FLAGS });
  mkdirSync(OUT, { recursive: true });
});
after(async () => {
  await browser?.close();
  await server?.end();
});

/** A page, and all that went wrong on it. */
async function page(path = "/console") {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  page.setDefaultTimeout(DEADLINE_MS);
  page.wrong = [];
  page.on("console", (message) => message.type() === "error" && page.wrong.push(message.text()));
  page.on("pageerror", (error) => page.wrong.push(String(error)));
  page.on("requestfailed", (request) => {
    // Streams end when their page is left.
    if (!request.url().includes("/v1/events")) page.wrong.push(`${request.url()}: ${request.failure().errorText}`);
  });
  await page.goto(server.http + path);
  return page;
}

async function signIn(page) {
  await page.fill("#key", server.key);
  await page.click("#sign-in");
  await page.waitForSelector("#shell:not([hidden])");
}

test("a wrong key is refused", async () => {
  const at = await page();
  await at.fill("#key", `crl_${"A".repeat(43)}`);
  await at.click("#sign-in");
  await at.waitForFunction(() => document.querySelector("#sign-in-error").textContent !== "");
  assert.ok(await at.isHidden("#shell"));
  // The browser itself reports the 401, nothing else.
  assert.ok(at.wrong.every((line) => line.includes("401")), at.wrong.join("\n"));
  await at.context().close();
});

test("the numbers of the node are shown", async () => {
  const device = await Peer.connect(server, await server.account());
  const at = await page();
  await signIn(at);
  await at.waitForFunction(() => document.querySelector("#stat-sessions")?.textContent.trim() === "1");
  assert.equal((await at.textContent("#stat-connections")).trim(), "1");
  assert.match(await at.textContent("#stat-memory"), /\d/);
  await at.screenshot({ path: join(OUT, "console-overview.png"), fullPage: true });
  assert.deepEqual(at.wrong, []);
  await at.context().close();
  await device.end();
});

test("a notification is sent and seen to arrive", async () => {
  const device = await Peer.connect(server, await server.account("phone"));
  const at = await page();
  await signIn(at);
  await at.click("[data-view=send]");
  await at.fill("#send-to", device.bare);
  await at.fill("#send-payload", JSON.stringify({ title: "From the console" }));
  await at.selectOption("#send-audience", "always");
  await at.click("#send-submit");
  const message = await device.take((s) => s.attrs.from === "push.localhost", "the notification");
  assert.deepEqual(JSON.parse(message.getChildText("json")), { title: "From the console" });
  await at.waitForSelector("#path [data-state=acknowledged]");
  assert.equal(await at.getAttribute("#path", "data-id"), message.attrs.id);
  const steps = await at.$$eval("#path [data-state]", (rows) => rows.map((row) => row.dataset.state));
  assert.deepEqual(steps, ["accepted", "stored", "sent", "acknowledged"]);
  await at.screenshot({ path: join(OUT, "console-send.png"), fullPage: true });
  assert.deepEqual(at.wrong, []);
  await at.context().close();
  await device.end();
});

test("one for a device that is away waits, and arrives when it comes", async () => {
  const user = await server.account("away");
  const at = await page();
  await signIn(at);
  await at.click("[data-view=send]");
  await at.fill("#send-to", user);
  await at.fill("#send-payload", "1");
  await at.click("#send-submit");
  await at.waitForSelector("#path [data-state=stored]");
  const device = await Peer.connect(server, user);
  await at.waitForSelector("#path [data-state=acknowledged]");
  assert.deepEqual(at.wrong, []);
  await at.context().close();
  await device.end();
});

test("every page opens without an error, and shows text as text", async () => {
  const markup = "<img src=x onerror=alert(1)>";
  const user = await server.account("seen");
  const device = await Peer.connect(server, user);
  const topic = unique("news");
  await server.api("PUT", `/v1/topics/${topic}`, { title: markup });
  await server.api("PUT", `/v1/devices/${user}/subscriptions/${topic}`);
  await server.api("POST", `/v1/topics/${topic}/items`, { id: markup, payload: markup });
  const at = await page();
  await signIn(at);
  for (const [view, text] of [
    ["topics", topic],
    ["sessions", device.jid],
    ["devices", user],
    ["overview", "Version"],
  ]) {
    await at.click(`[data-view=${view}]`);
    await at.waitForFunction((text) => document.querySelector("#main").innerText.includes(text), text);
    if (view === "topics") {
      await at.click(`[data-topic="${topic}"] button`);
      await at.waitForFunction((id) => document.querySelector("#main [data-item]")?.dataset.item === id, markup);
    }
    assert.equal(await at.locator("#main img").count(), 0);
    await at.screenshot({ path: join(OUT, `console-${view}.png`), fullPage: true });
  }
  await at.click("#sign-out");
  await at.waitForSelector("#gate:not([hidden])");
  assert.deepEqual(at.wrong, []);
  await at.context().close();
  await device.xmpp.send(xml("presence", { type: "unavailable" }));
  await device.end();
});

test("the documentation lists the routes", async () => {
  const at = await page("/docs");
  await at.waitForFunction(() => document.body.innerText.includes("/v1/notifications"));
  await at.screenshot({ path: join(OUT, "docs.png") });
  assert.deepEqual(at.wrong, []);
  await at.context().close();
});
