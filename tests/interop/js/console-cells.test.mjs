// The console's page of cells, at their front: which answer, draining one, and moving one device.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { close, launch, pictures, says, signedIn } from "./browser.mjs";
import { Server } from "./harness.mjs";

const DEVICES = 20;
let front, cells, browser;

before(async () => {
  [front, browser] = [await Server.start({ "cells.front": true, "cells.timeout_ms": 2000 }), await launch()];
  cells = { a: await Server.start(), b: await Server.start() };
  for (const [name, { http, key }] of Object.entries(cells)) await front.api("PUT", `/v1/cells/${name}`, { url: http, key, weight: name === "a" ? 300 : 100 });
  for (let n = 0; n < DEVICES; n++) await front.api("POST", "/v1/devices", { id: `device${n}` });
});
after(async () => {
  await browser?.close();
  for (const server of [front, cells?.a]) await server?.end();
});

const at = (cell) => `[data-cell="${cell}"]`;

test("cells are shown with their share; one is drained, and stops to be", async () => {
  const page = await signedIn(browser, front, "#cells");
  await says(page, "75 % of new devices", at("a"));
  await says(page, "25 % of new devices", at("b"));
  await says(page, "None");
  await pictures(page, "cells");
  await page.click(`${at("a")} [data-testid=cell-drain]`);
  await says(page, "up to 50 per second", "#confirm");
  assert.ok(await page.isDisabled("#confirm-yes"));
  await page.fill("#confirm-typed", "a");
  await page.click("#confirm-yes");
  await says(page, "no new devices", at("a"));
  await front.eventually("/v1/cells/b", (cell) => cell.devices === DEVICES);
  await says(page, "100 % of new devices", at("b"));
  await page.click(`${at("a")} [data-testid=cell-pause]`);
  await says(page, "paused", at("a"));
  await page.click(`${at("a")} [data-testid=cell-off]`);
  await says(page, "75 % of new devices", at("a"));
  await close(page);
});

test("one device is moved; what is wrong is said beside the form", async () => {
  const page = await signedIn(browser, front, "#cells");
  await page.fill("#move-device", "device0");
  await page.fill("#move-to", "nowhere");
  await page.click("#move-submit");
  await says(page, "nowhere", "#move-error");
  await page.fill("#move-to", "a");
  await page.click("#move-submit");
  await says(page, "device0@localhost moves to a.", "#toasts");
  await front.eventually("/v1/cells/a", (cell) => cell.devices === 1);
  await close(page, true);
});

test("a cell that is away says why, and what is held for it", async () => {
  await cells.b.end();
  const page = await signedIn(browser, front, "#cells");
  await front.api("POST", "/v1/notifications", { to: "device1", payload: { n: 1 } });
  await page.waitForSelector(`${at("b")} .badge:text-is("away")`);
  await page.waitForFunction(() => document.querySelector('[data-cell="b"] [data-label="Held"]').innerText.startsWith("1"));
  await pictures(page, "cells-away");
  await close(page);
});

test("a node that is no front says so", async () => {
  const page = await signedIn(browser, cells.a, "#cells");
  await says(page, "Not a front");
  assert.equal(await page.isVisible("#move-form"), false);
  await close(page, true);
});
