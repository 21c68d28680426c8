// The console's page of administrative acts.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { close, go, launch, pictures, says, signedIn } from "./browser.mjs";
import { Server } from "./harness.mjs";

let server, browser;

before(async () => {
  [server, browser] = [await Server.start(), await launch()];
});
after(async () => {
  await browser?.close();
  await server?.end();
});

const outcomes = (at) => at.$$eval("[data-act] .badge", (all) => all.map((badge) => badge.innerText));
const whats = (at) => at.$$eval("[data-act] td.mono", (all) => all.map((cell) => cell.innerText));

test("acts are listed, filtered by who, what and outcome, and paged", async () => {
  const clerk = await server.api("POST", "/v1/admin/keys", { name: "the clerk", scopes: ["admin"] });
  const byClerk = (method, path, body) =>
    fetch(server.http + path, { method, headers: { authorization: `Bearer ${clerk.key}`, "content-type": "application/json" }, body: JSON.stringify(body) });
  for (let n = 0; n < 60; n += 1) {
    const answer = await byClerk("PUT", `/v1/admin/domains/d${n}.example`, {});
    assert.equal(answer.status, 201);
  }
  assert.equal((await byClerk("DELETE", "/v1/admin/accounts/nobody@localhost")).status, 404);

  const at = await signedIn(browser, server, "#acts");
  await says(at, "DELETE /v1/admin/accounts/nobody@localhost");
  // The newest first, a page of fifty, and then the rest.
  assert.match((await whats(at))[0], /^DELETE \/v1\/admin\/accounts/);
  assert.equal((await whats(at)).length, 50);
  await at.click("[data-testid=acts-more]");
  await says(at, "POST /v1/admin/keys");
  assert.ok((await whats(at)).length >= 62);
  await pictures(at, "acts");

  await at.selectOption("#acts-outcome", "refused");
  await at.waitForFunction(() => document.querySelectorAll("[data-act]").length === 1);
  assert.deepEqual(await outcomes(at), ["404 unknown-account"]);

  await at.selectOption("#acts-outcome", "");
  await at.fill("#acts-what", "d7.EXAMPLE");
  await at.click("[data-testid=acts-search]");
  // The list before this one has one row, too.
  await at.waitForFunction(() => {
    const acts = [...document.querySelectorAll("[data-act]")];
    return acts.length === 1 && acts[0].textContent.includes("d7.example");
  });
  assert.deepEqual(await whats(at), ["PUT /v1/admin/domains/d7.example"]);
  assert.deepEqual(await outcomes(at), ["201"]);

  await at.fill("#acts-what", "");
  // Who did it, from its row, and from the list of keys.
  await at.click('[data-act] button:has-text("the clerk")');
  assert.equal(await at.inputValue("#acts-key"), String(clerk.id));
  await at.waitForFunction(() => !document.querySelector("#acts-what").value && document.querySelectorAll("[data-act]").length === 50);
  await at.selectOption("#acts-key", { index: 1 });
  await says(at, "POST /v1/admin/keys");
  assert.ok(!(await whats(at)).some((what) => what.includes("d7.example")));

  await at.fill("#acts-what", "nothing like this");
  await at.click("[data-testid=acts-search]");
  await says(at, "No such acts");
  await pictures(at, "acts-none");
  await go(at, "#keys");
  await says(at, "the clerk");
  await close(at);
});
