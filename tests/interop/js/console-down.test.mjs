// The console when its node dies, hangs and comes back.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { close, go, launch, pictures, says, signedIn } from "./browser.mjs";
import { Server } from "./harness.mjs";

let browser;

before(async () => { browser = await launch(); });
after(async () => { await browser?.close(); });

const state = (at, word) => at.waitForFunction((word) => document.querySelector("[data-testid=node-state]")?.textContent === word, word);

test("a node that died is shown as unreachable, its figures with their age, and nothing as fine", async () => {
  const server = await Server.start();
  const at = await signedIn(browser, server);
  await state(at, "Taking sessions");
  await server.kill();
  await state(at, "Unreachable");
  await at.waitForSelector(".stale #stat-sessions");
  await at.waitForFunction(() => /These figures are from \d\d:\d\d:\d\d, \d+s ago/.test(document.querySelector("[data-testid=node-lead]").textContent));
  await says(at, "The node has not answered since", "#link-state");
  assert.ok(!(await at.innerText("#main")).includes("Taking sessions"));
  await pictures(at, "overview-down");
  // The other pages say it, too, each for itself.
  await go(at, "#devices");
  await says(at, "The node cannot be reached.");
  await pictures(at, "devices-down");
  await go(at, "#keys");
  await says(at, "API keys", "#main h1");
  assert.ok(await at.isVisible("#link-state"));
  await at.context().close();
});

test("a node that hangs is shown so, and when it is back nothing is left of the errors", async () => {
  const server = await Server.start();
  const at = await signedIn(browser, server);
  await state(at, "Taking sessions");
  server.process.kill("SIGSTOP");
  await state(at, "Unreachable");
  await go(at, "#domains");
  await says(at, "The node does not answer.");
  server.process.kill("SIGCONT");
  // The page that failed is read again by itself.
  await at.waitForSelector('[data-domain="localhost"]');
  await at.waitForSelector("#link-state", { state: "hidden" });
  assert.ok(!(await at.innerText("body")).includes("does not answer"));
  await go(at, "#overview");
  await state(at, "Taking sessions");
  assert.equal(await at.locator(".stale").count(), 0);
  await close(at);
  await server.end();
});

test("an error stays on the page it belongs to", async () => {
  const server = await Server.start();
  const at = await signedIn(browser, server, "#send");
  await at.fill("#send-to", "nobody");
  await at.click("#send-submit");
  await at.waitForFunction(() => document.querySelector("#toasts").textContent + document.querySelector("#send-error").textContent !== "");
  await go(at, "#topics");
  await says(at, "No topics yet");
  assert.equal(await at.textContent("#toasts"), "");
  assert.equal(await at.locator(".error-text:visible").count(), 0);
  await at.context().close();
  await server.end();
});
