// The console's page of modules: what is activated, what it decided, going back and taking it away.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { close, launch, pictures, says, signedIn } from "./browser.mjs";
import { Server } from "./harness.mjs";

let server, browser;

before(async () => {
  [server, browser] = [await Server.start(), await launch()];
});
after(async () => {
  await browser?.close();
  await server?.end();
});

const section = (number, ...content) => [number, content.length, ...content];
const name = (text) => [text.length, ...Buffer.from(text)];

/** A module whose `submit_message` returns this number. */
const module = (verdict) => Uint8Array.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
  ...section(1, 1, 0x60, 0, 1, 0x7f), ...section(3, 1, 0), ...section(5, 1, 0, 1),
  ...section(7, 2, ...name("memory"), 2, 0, ...name("submit_message"), 0, 0), ...section(10, 1, 4, 0, 0x41, verdict, 0x0b)]);

async function push(verdict) {
  const headers = { authorization: `Bearer ${server.key}`, "content-type": "application/wasm" };
  const answer = await fetch(`${server.http}/v1/admin/modules/filter`, { method: "POST", headers, body: module(verdict) });
  assert.equal(answer.status, 201, await answer.clone().text());
  return (await answer.json()).hash;
}

const activate = (hash, more) => server.api("PUT", "/v1/admin/modules/filter/activation", { hash, ...more });

test("modules are shown, rolled back and deactivated", async () => {
  const at = await signedIn(browser, server, "#modules");
  await says(at, "None was pushed to this node.");
  const [before, now] = [await push(0), await push(1)];
  await activate(before);
  await activate(now, { percent: 5, shadow: true });
  const line = '[data-module="filter"]';
  await says(at, now.slice(0, 12), line);
  await says(at, `before: ${before.slice(0, 12)}`, line);
  await says(at, "5 % of all", line);
  await says(at, "in shadow", line);
  await at.click(`${line} [data-testid=module-show]`);
  await says(at, "It said nothing on this node.");
  await pictures(at, "modules");
  await at.click(`${line} [data-testid=module-rollback]`);
  await at.click("#confirm-yes");
  const back = await server.eventually("/v1/admin/modules/filter", ({ activation }) => activation.hash === before);
  assert.deepEqual([back.activation.percent, back.activation.shadow, back.activation.base], [100, false, null]);
  await at.waitForSelector(`${line} [data-testid=module-rollback]`, { state: "detached" });
  await at.click(`${line} [data-testid=module-deactivate]`);
  await at.click("#confirm-yes");
  await says(at, "not active", line);
  assert.equal((await server.api("GET", "/v1/admin/modules/filter")).activation, null);
  await close(at);
});
