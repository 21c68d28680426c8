// The console's page of a cell: its nodes, where things are, draining one and burying one.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { close, launch, pictures, says, signedIn } from "./browser.mjs";
import { Cell } from "./cell.mjs";
import { Server, unique } from "./harness.mjs";

let cell, alone, browser;

before(async () => {
  [cell, alone, browser] = [await Cell.start(3), await Server.start(), await launch()];
});
after(async () => {
  await browser?.close();
  await alone?.end();
  await cell?.end();
});

const confirm = (at) => at.click("#confirm-yes");
const become = (at, node, word) => at.waitForSelector(`[data-node="${node}"] .badge:text-is("${word}")`);

test("the nodes are shown, and where an account is", async () => {
  const at = await signedIn(browser, cell.nodes[0], "#cluster");
  for (const { name } of cell.nodes) await become(at, name, "alive");
  await says(at, "Well");
  await says(at, "As node0 sees it.");
  const name = unique("user");
  await cell.nodes[0].api("POST", "/v1/admin/accounts", { jid: name, password: "secret" });
  const { home } = await cell.nodes[1].api("GET", `/v1/cluster/where/${name}@localhost`);
  await at.fill("#where-jid", `${name}@localhost`);
  await at.press("#where-jid", "Enter");
  await says(at, home, "[data-testid=where-found]");
  await says(at, "0 sessions", "[data-testid=where-found]");
  await at.fill("#where-jid", "localhost");
  await at.press("#where-jid", "Enter");
  await says(at, "it names a domain", "[data-testid=where-found]");
  await pictures(at, "cluster");
  // The last question is refused: that is wanted.
  await close(at, true);
});

test("a node is drained from another, and takes sessions again", async () => {
  const at = await signedIn(browser, cell.nodes[0], "#cluster");
  await become(at, "node1", "alive");
  await at.click('[data-node="node1"] [data-testid=node-drain]');
  await says(at, "The other nodes take its homes at once.", "#confirm");
  await confirm(at);
  await become(at, "node1", "leaving");
  await says(at, "drained", '[data-node="node1"]');
  await says(at, "0 %", '[data-node="node1"]');
  const seen = await cell.nodes[2].api("GET", "/v1/cluster/nodes/node1");
  assert.deepEqual([seen.partitions, seen.report.ready], [0, false]);
  await pictures(at, "cluster-drained");
  await at.click('[data-node="node1"] [data-testid=node-undrain]');
  await become(at, "node1", "alive");
  await cell.nodes[2].eventually("/v1/cluster/nodes/node1", (node) => node.partitions > 0);
  await close(at);
});

test("a node that is silent is shown, and buried once its name is typed", async () => {
  const at = await signedIn(browser, cell.nodes[0], "#cluster");
  await become(at, "node2", "alive");
  // Nobody is heard without NATS, and so nobody is buried by himself.
  cell.nats("stop");
  await become(at, "node2", "silent");
  await says(at, "Not well");
  await says(at, "the bus of this node is away");
  await says(at, "node2 was not heard for");
  await pictures(at, "cluster-silent");
  await at.click('[data-node="node2"] button:has-text("Evict")');
  assert.ok(await at.isDisabled("#confirm-yes"));
  await at.fill("#confirm-typed", "node2");
  await confirm(at);
  await become(at, "node2", "dead");
  cell.nats("start");
  await cell.nodes[1].eventually("/v1/cluster/nodes/node2", (node) => node.state === "dead" && node.partitions === 0);
  await says(at, "Well");
  await close(at);
});

test("a node that runs alone says so", async () => {
  const at = await signedIn(browser, alone, "#cluster");
  await says(at, "This node runs alone");
  await says(at, "100 %");
  await close(at);
});
