// Broadcasts in the console: counted, sent, seen to arrive, paused and aborted.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { close, launch, pictures, says, signedIn } from "./browser.mjs";
import { Server } from "./harness.mjs";

let server, browser;

before(async () => {
  server = await Server.start();
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await server?.end();
});

test("a broadcast is counted, sent, paused, resumed and aborted", async () => {
  const at = await signedIn(browser, server, "#broadcasts");
  await says(at, "No broadcasts");
  await pictures(at, "broadcasts-none");
  await at.check("#broadcast-dry-run");
  await at.click("#broadcast-submit");
  await says(at, "0 accounts would be given it now", "#toasts");
  await at.uncheck("#broadcast-dry-run");
  await at.fill("#broadcast-rate", "0");
  assert.equal(await at.$eval("#broadcast-rate", (control) => control.checkValidity()), false);
  await at.fill("#broadcast-rate", "100");
  await at.click("#broadcast-submit");
  await at.click('dialog button:has-text("Send")');
  await says(at, "100/s");
  const state = () => at.textContent('[data-testid="broadcast-state"]');
  assert.equal(await state(), "running");
  await at.click('button:has-text("Pause")');
  await says(at, "The broadcast is paused.", "#toasts");
  await at.waitForSelector('button:has-text("Resume")');
  assert.equal(await state(), "paused");
  await pictures(at, "broadcasts-paused");
  await at.click('button:has-text("Resume")');
  await at.waitForSelector('button:has-text("Pause")');
  await at.click('[data-broadcast] button:has-text("Abort")');
  await at.click('dialog button:has-text("Abort")');
  await says(at, "The broadcast is aborted.", "#toasts");
  await at.waitForSelector('[data-testid="broadcast-state"]:has-text("aborted")');
  assert.equal(await at.$('[data-broadcast] button'), null);
  await close(at);
});
