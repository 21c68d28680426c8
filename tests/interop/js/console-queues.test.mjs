// The console's page of queues: how taking from one goes, its dead letters, and sending these again.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { close, launch, pictures, says, signedIn } from "./browser.mjs";
import { Stream } from "./cell.mjs";
import { Server } from "./harness.mjs";

let stream, node, alone, browser;

before(async () => {
  [stream, alone, browser] = [await Stream.start("ORDERS", "orders"), await Server.start(), await launch()];
  const queue = { url: stream.url, stream: stream.name, sender: "backend" };
  node = await Server.start(Object.fromEntries(Object.entries(queue).map(([key, value]) => [`intake.queues.orders.${key}`, value])));
  await node.api("POST", "/v1/admin/keys", { name: "backend", scopes: ["send"] });
});
after(async () => {
  await browser?.close();
  for (const one of [node, alone, stream]) await one?.end();
});

test("what is taken and what is dead is shown; dead letters are sent again", async () => {
  const device = await node.account();
  stream.publish({ to: device, payload: { n: 1 } });
  stream.publish({ to: "late", payload: { n: 2 } });
  stream.publish({ to: device, audience: "nobody", payload: {} });
  await node.eventually("/v1/queues/orders", (queue) => queue.accepted === 1 && queue.dead === 2);
  const page = await signedIn(browser, node, "#queues");
  await page.waitForSelector('[data-queue="orders"] .badge:text-is("pulling")');
  await says(page, "unknown-device: 1", '[data-queue="orders"]');
  await pictures(page, "queues");
  await page.click('[data-queue="orders"] a');
  await page.waitForSelector("[data-letter]");
  assert.equal(await page.locator("[data-letter]").count(), 2);
  for (const summary of await page.locator("[data-letter] summary").all()) await summary.click();
  await says(page, '"late"');
  await pictures(page, "queue");
  // What was wrong with one of them is mended.
  await node.api("POST", "/v1/admin/accounts", { jid: "late", password: "secret" });
  await page.click("[data-testid=queue-redrive]");
  await says(page, "Send 2 dead letters again?", "#confirm");
  await page.click("#confirm-yes");
  await says(page, "2 messages sent again.", "#toasts");
  await node.eventually("/v1/queues/orders", (queue) => queue.accepted === 2 && queue.dead === 1);
  await close(page);
});

test("without queues the page says where they are set", async () => {
  const page = await signedIn(browser, alone, "#queues");
  await says(page, "No queues");
  await close(page);
});

test("a queue that there is not is an error, and nothing can be sent again", async () => {
  const page = await signedIn(browser, alone, "#queues/nothing");
  await says(page, "the settings name no queue `nothing`");
  assert.ok(await page.isDisabled("[data-testid=queue-redrive]"));
  await close(page, true);
});
