// Short links as people see them: the page of their host, without script, and the page of the console.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { close, launch, pictures, says, signedIn } from "./browser.mjs";
import { DEADLINE_MS, Peer, Server } from "./harness.mjs";

let server, browser, host;

before(async () => {
  server = await Server.start({ "links.hosts": "http://localhost=localhost" });
  host = `http://localhost:${server.ports.http}`;
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await server?.end();
});

async function visit(path) {
  const context = await browser.newContext({ javaScriptEnabled: false, viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  page.setDefaultTimeout(DEADLINE_MS);
  page.wrong = [];
  page.on("console", (message) => message.type() === "error" && page.wrong.push(message.text()));
  await page.goto(host + path);
  return page;
}

test("an address is shortened without script", async () => {
  const at = await visit("/");
  await pictures(at, "link-page");
  await at.fill("#url", "https://bit.ly/abc");
  await at.fill("#key", server.key);
  await at.click("button");
  await at.waitForSelector('[role="alert"]');
  assert.match(await at.textContent('[role="alert"]'), /shortens URLs itself/);
  assert.equal(await at.inputValue("#url"), "https://bit.ly/abc");
  assert.equal(await at.inputValue("#key"), "");
  await pictures(at, "link-refused");
  const long = `https://example.com/${"a-long-path/".repeat(20)}?x=1`;
  await at.fill("#url", long);
  await at.fill("#code", "Summer");
  await at.fill("#key", server.key);
  await at.click("button");
  await at.waitForSelector(".short");
  assert.equal(await at.textContent(".short"), "http://localhost/Summer");
  await pictures(at, "link-made");
  await close(at, true);
  const preview = await visit("/Summer+");
  assert.equal(await preview.getAttribute(".button", "href"), long);
  await pictures(preview, "link-preview");
  await close(preview);
  const none = await visit("/none");
  await pictures(none, "link-unknown");
  await close(none, true);
});

test("a notification is sent with a link from the console", async () => {
  const device = await Peer.connect(server, await server.account("linked"));
  const at = await signedIn(browser, server, "#send");
  await at.fill("#send-to", device.bare);
  await at.fill("#send-payload", '{"title": "Shipped"}');
  await at.fill("#send-link", "https://bit.ly/a");
  await at.click("#send-submit");
  await says(at, "shortens URLs itself", "#send-error");
  assert.equal(await at.getAttribute("#send-link", "aria-invalid"), "true");
  await at.fill("#send-link", "https://example.com/orders/17");
  await at.click("#send-submit");
  const message = await device.take((s) => s.attrs.from === "push.localhost", "the notification");
  const { title, link } = JSON.parse(message.getChildText("json"));
  assert.equal(title, "Shipped");
  assert.match(link, /^http:\/\/localhost\/[^.]+\..{22}$/);
  const followed = await fetch(host + new URL(link).pathname, { redirect: "manual" });
  assert.equal(followed.headers.get("location"), "https://example.com/orders/17");
  await at.waitForSelector("#path [data-state=opened]");
  // One was refused.
  await close(at, true);
  await device.end();
});

test("links are made, found, taken down and brought back in the console, and files of apps are set", async () => {
  const at = await signedIn(browser, server, "#links");
  await says(at, "Short links of localhost");
  await at.fill("#link-url", "https://example.com/offers");
  await at.click("#link-new-submit");
  await says(at, "It leads to https://example.com/offers");
  await at.fill("#link-url", "https://example.com/menu");
  await at.fill("#link-code", "menu");
  await at.check("#link-may-change");
  await at.fill("#link-expires", "2020-01-01T12:00");
  await at.click("#link-new-submit");
  await says(at, "is in the past", "#link-new-error");
  assert.equal(await at.getAttribute("#link-expires", "aria-invalid"), "true");
  await at.fill("#link-expires", "2099-01-01T12:00");
  await at.click("#link-new-submit");
  await at.waitForSelector('[data-link="menu"]');
  const menu = () => server.api("GET", "/v1/links/menu");
  const made = await menu();
  assert.equal(made.may_change, true);
  // In the zone of the browser.
  assert.ok(Math.abs(Date.parse(made.expires_at) - Date.parse("2099-01-01T12:00Z")) <= 14 * 3_600_000, made.expires_at);
  // It leads elsewhere, and for ever.
  await at.click('[data-link="menu"] button:has-text("Change")');
  await pictures(at, "link-change");
  await at.fill("#link-change-url", "https://bit.ly/a");
  await at.click("#link-change-submit");
  await says(at, "shortens URLs itself", "#link-change-error");
  await at.fill("#link-change-url", "https://example.com/menu/2");
  await at.fill("#link-change-expires", "");
  await at.click("#link-change-submit");
  await says(at, "https://example.com/menu/2", '[data-link="menu"]');
  assert.equal((await menu()).expires_at, null);
  await at.click('[data-link="menu"] button:has-text("Take down")');
  await at.click("#confirm-yes");
  await at.waitForSelector('[data-link="menu"] .badge.bad');
  await pictures(at, "links");
  await at.click('[data-link="menu"] button:has-text("Bring back")');
  await at.waitForSelector('[data-link="menu"] button:has-text("Take down")');
  await at.fill("#link-search", "offers");
  await at.press("#link-search", "Enter");
  await at.waitForSelector('[data-link="menu"]', { state: "detached" });
  await at.fill("#file-iOS", '{"applinks": {}}');
  await at.click("#file-ios-submit");
  await says(at, "applinks.details");
  await at.fill("#file-iOS", '{"applinks": {"details": [{"appIDs": ["ABCDE12345.com.example.app"]}]}}');
  await at.click("#file-ios-submit");
  await says(at, "apple-app-site-association is served.", "body");
  const served = await fetch(`${host}/apple-app-site-association`);
  assert.equal(served.status, 200);
  // The files that were not there yet were asked for.
  await close(at, true);
});
