// The console's page of the accounts that cost most.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { close, launch, pictures, says, signedIn } from "./browser.mjs";
import { Peer, Server } from "./harness.mjs";

let server, browser;

before(async () => {
  [server, browser] = [await Server.start(), await launch()];
});
after(async () => {
  await browser?.close();
  await server?.end();
});

test("who sends most is on top, and the order can be chosen", async () => {
  const [much, little] = [await server.account("much"), await server.account("little")];
  const [busy, calm] = [await Peer.connect(server, much), await Peer.connect(server, little)];
  for (let n = 0; n < 20; n += 1) await busy.chat(`${little}@localhost`, "short");
  await calm.chat(`${much}@localhost`, "x".repeat(50_000));
  await server.eventually("/v1/top?by=bytes", ({ accounts }) => accounts[0]?.account === `${little}@localhost`);
  await server.eventually("/v1/top", ({ accounts }) => accounts[0]?.messages >= 20);
  const at = await signedIn(browser, server, "#top");
  await says(at, `${much}@localhost`, "tbody tr:first-child");
  await at.selectOption("[data-testid=top-by]", "bytes");
  await says(at, `${little}@localhost`, "tbody tr:first-child");
  assert.match(await at.textContent("tbody tr:first-child"), /KiB/);
  await pictures(at, "top");
  await at.selectOption("[data-testid=top-by]", "queue");
  await says(at, "nothing waits for any");
  await close(at);
  await Promise.all([busy.end(), calm.end()]);
});
