// The device in Chromium: the package and xmpp.js in one file, as a bundler makes it, on a page of somebody's own.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { createServer } from "node:http";
import { once } from "node:events";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { enrol } from "@carillon-im/device";
import { build } from "esbuild";
import { chromium } from "playwright-core";

import { CARILLON_KEY, CARILLON_URL, CARILLON_WEBSOCKET, Told, api, becomes } from "./environment.mjs";

const PLACES = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

test("a page is a device, and again when it is loaded again", async (t) => {
  const entry = fileURLToPath(new URL("../dist/index.js", import.meta.url));
  const bundle = await build({ entryPoints: [entry], bundle: true, format: "esm", platform: "browser", write: false });
  const server = createServer((request, response) => {
    const isBundle = request.url === "/device.js";
    response.setHeader("content-type", isBundle ? "text/javascript" : "text/html").end(isBundle ? bundle.outputFiles[0].text : "<!doctype html>");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const browser = await chromium.launch({
    executablePath: PLACES.find((path) => path && existsSync(path)),
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--ignore-certificate-errors"],
  });
  t.after(() => browser.close());
  const page = await browser.newPage();
  const [told, wrong] = [new Told(), []];
  page.on("pageerror", (error) => wrong.push(String(error)));
  await page.exposeFunction("tell", (one) => told.add(one));
  const { id, jid, secret } = await enrol({ url: CARILLON_URL, key: CARILLON_KEY });
  // The second time it has a token, and needs no secret.
  for (const [life, proof] of [{ secret }, {}].entries()) {
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
    await page.evaluate(async (options) => {
      const { Device, webStorage } = await import("/device.js");
      const device = new Device({ ...options, store: webStorage(localStorage, "carillon"), onNotification: globalThis.tell });
      await device.connect();
    }, { jid, url: CARILLON_WEBSOCKET, ...proof });
    const sent = await api.send(id, { payload: { life } });
    const given = await told.take((one) => one.id === sent.id, "the notification");
    assert.deepEqual(given.payload, { life });
    assert.equal((await becomes(sent.id, "acknowledged")).acknowledged_by, "stream-management");
  }
  assert.deepEqual(wrong, []);
});
