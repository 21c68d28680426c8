// The console in a real browser: an operator signs in, looks, and sends.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { close, launch, open, pictures, says, signedIn } from "./browser.mjs";
import { Peer, Server, unique, xml } from "./harness.mjs";

let server, browser;

before(async () => {
  server = await Server.start();
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await server?.end();
});

test("a wrong key is refused", async () => {
  const at = await open(browser, server);
  await pictures(at, "sign-in");
  await at.fill("#key", `crl_${"A".repeat(43)}`);
  await at.click("#sign-in");
  await at.waitForFunction(() => document.querySelector("#sign-in-error").textContent !== "");
  assert.ok(await at.isHidden("#shell"));
  // The browser itself reports the 401, nothing else.
  assert.ok(at.wrong.every((line) => line.includes("401")), at.wrong.join("\n"));
  await at.context().close();
});

test("the overview shows the figures, and the history that the node kept before the page was there", async () => {
  const device = await Peer.connect(server, await server.account());
  const kept = await server.eventually("/v1/admin/history", (history) => history.samples.at(-1)?.sessions === 1 && history.samples.length >= 2);
  const at = await signedIn(browser, server);
  await at.waitForFunction(() => document.querySelector("#stat-sessions")?.textContent.trim() === "1");
  assert.equal((await at.textContent("#stat-connections")).trim(), "1");
  assert.match(await at.textContent("#stat-memory"), /\d/);
  assert.equal(await at.textContent("[data-testid=node-state]"), "Taking sessions");
  const line = at.locator("[data-testid=chart-sessions] .line.series-2");
  await at.waitForFunction((line) => line.getAttribute("d"), await line.elementHandle());
  const points = (await line.getAttribute("d")).match(/[ML]/g).length;
  assert.ok(points >= kept.samples.length, `${points} points of ${kept.samples.length} samples`);
  // It goes on by itself, and a pointer reads it.
  await at.waitForFunction(([line, points]) => line.getAttribute("d").match(/[ML]/g).length > points, [await line.elementHandle(), points]);
  await at.hover("[data-testid=chart-sessions] .plot");
  await at.waitForFunction(() => [...document.querySelectorAll(".chart-foot")].every((foot) => /\d\d:\d\d:\d\d, \d+s ago/.test(foot.textContent)));
  await at.mouse.move(0, 0);
  await pictures(at, "overview");
  await close(at);
  await device.end();
});

test("a notification is sent and seen to arrive", async () => {
  const device = await Peer.connect(server, await server.account("phone"));
  const at = await signedIn(browser, server);
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
  // What cannot be sent is said where it is typed.
  await at.fill("#send-payload", "{");
  await at.click("#send-submit");
  await says(at, "neither JSON nor an XML element", "#send-error");
  assert.equal(await at.getAttribute("#send-payload", "aria-invalid"), "true");
  await at.fill("#send-payload", '{"n": 1}');
  await at.fill("#send-link", "https://example.com/offers");
  await at.click("#send-submit");
  await says(at, "links.hosts", "#send-error");
  assert.equal(await at.getAttribute("#send-link", "aria-invalid"), "true");
  await at.fill("#send-link", "");
  await at.fill("#send-payload", "2");
  await at.click("#send-submit");
  await at.waitForSelector("[data-testid=recent] tbody tr:nth-child(2)");
  await at.waitForSelector("#path [data-state=acknowledged]");
  await pictures(at, "send");
  // One was refused.
  await close(at, true);
  await device.end();
});

test("one for a device that is away waits, and arrives when it comes", async () => {
  const user = await server.account("away");
  const at = await signedIn(browser, server);
  await at.click("[data-view=send]");
  await at.fill("#send-to", user);
  await at.fill("#send-payload", "1");
  await at.click("#send-submit");
  await at.waitForSelector("#path [data-state=stored]");
  const device = await Peer.connect(server, user);
  await at.waitForSelector("#path [data-state=acknowledged]");
  await close(at);
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
  await server.api("POST", "/v1/admin/keys", { name: markup, scopes: ["send"] });
  const at = await signedIn(browser, server);
  for (const [view, text] of [
    ["topics", topic],
    ["sessions", device.jid],
    ["devices", user],
    ["domains", "localhost"],
    ["keys", markup],
    ["events", "No events yet"],
    ["notifications", "Notifications"],
    ["overview", "Carillon 0."],
  ]) {
    await at.click(`[data-view=${view}]`);
    await says(at, text);
    if (view === "topics") {
      await at.click(`[data-topic="${topic}"] a`);
      await at.waitForFunction((id) => document.querySelector("#main [data-item]")?.dataset.item === id, markup);
    }
    assert.equal(await at.locator("#main img").count(), 0);
  }
  await at.click("#sign-out");
  await at.waitForSelector("#gate:not([hidden])");
  await close(at);
  await device.xmpp.send(xml("presence", { type: "unavailable" }));
  await device.end();
});

test("the documentation lists the routes", async () => {
  const at = await open(browser, server, "/docs");
  await at.waitForFunction(() => document.body.innerText.includes("/v1/notifications"));
  const height = await at.evaluate(() => document.documentElement.scrollHeight);
  assert.ok(height < 10000, `${height} pixels tall`);
  // Each operation opens, with a request to be copied.
  await at.click("#sendNotification > summary");
  await at.waitForSelector("#sendNotification .example");
  const request = await at.innerText("#sendNotification .example");
  assert.match(request, /^curl -sS "http:\/\/127\.0\.0\.1:\d+\/v1\/notifications" \\\n/);
  assert.match(request, /"title": "Your order has shipped"/);
  // A search narrows the list, and what it does not name goes.
  await at.fill("#find", "presence look");
  const shown = () => at.$$eval("details.route", (all) => all.filter((one) => one.checkVisibility()).map((one) => one.id));
  assert.deepEqual((await shown()).filter((id) => id !== "codes"), ["lookUpPresence"]);
  await at.fill("#find", "no such thing");
  await at.waitForSelector("#nothing:not([hidden])");
  await close(at);
});
