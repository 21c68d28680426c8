// Short links as people see them: the page of their host, without script, and the page of the console.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { close, launch, pictures, says, signedIn } from "./browser.mjs";
import { DEADLINE_MS, Server } from "./harness.mjs";

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

test("links are made, found, taken down and brought back in the console, and files of apps are set", async () => {
  const at = await signedIn(browser, server, "#links");
  await says(at, "Short links of localhost");
  await at.fill("#link-url", "https://example.com/offers");
  await at.click("#link-new-submit");
  await says(at, "It leads to https://example.com/offers");
  await at.fill("#link-url", "https://example.com/menu");
  await at.fill("#link-code", "menu");
  await at.click("#link-new-submit");
  await at.waitForSelector('[data-link="menu"]');
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
