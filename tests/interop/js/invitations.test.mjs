// The page of an invitation as people see it, without script.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { close, launch, pictures } from "./browser.mjs";
import { DEADLINE_MS, Server } from "./harness.mjs";

let server, browser;

before(async () => {
  server = await Server.start({ "invitations.enabled": "true", "invitations.url": "https://chat.example.org" });
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await server?.end();
});

async function made(body) {
  const headers = { authorization: `Bearer ${server.key}`, "content-type": "application/json" };
  const answer = await fetch(`${server.http}/v1/invitations`, { method: "POST", headers, body: JSON.stringify(body) });
  assert.equal(answer.status, 201);
  return answer.json();
}

async function visit(path) {
  const context = await browser.newContext({ javaScriptEnabled: false, viewport: { width: 390, height: 844 } });
  const page = await context.newPage();
  page.setDefaultTimeout(DEADLINE_MS);
  page.wrong = [];
  page.on("console", (message) => message.type() === "error" && page.wrong.push(message.text()));
  await page.goto(server.http + path);
  return page;
}

test("whoever is invited is shown what to do", async () => {
  const invitation = await made({ localpart: "a-name-that-is-as-long-as-names-of-people-may-well-be", uses: 2 });
  const at = await visit(new URL(invitation.landing_url).pathname);
  assert.equal(await at.getAttribute(".button", "href"), invitation.uri);
  assert.equal(await at.textContent(".code"), invitation.token);
  await pictures(at, "invitation");
  await close(at);
  const gone = await visit("/invitations/localhost/none");
  assert.match(await gone.textContent("h1"), /cannot be used/);
  await pictures(gone, "invitation-gone");
  await close(gone, true);
});
