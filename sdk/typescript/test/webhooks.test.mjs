// Requests that a real node makes to a webhook, and ones that somebody else made up.

import assert from "node:assert/strict";
import { test } from "node:test";

import { BadSignature, verifyWebhook } from "@carillon-im/sender";

import { connect, webhook } from "./environment.mjs";

test("what the node signed is taken, and nothing else", async () => {
  const api = connect();
  const sent = await api.send((await api.enrol()).id, { payload: 1 });
  const { secret, headers, body } = await webhook(() => api.cancel(sent.id));
  const said = await verifyWebhook(secret, headers, body);
  assert.equal(said.type, "notifications.ended");
  assert.equal(said.events[0].notification.id, sent.id);
  // The new secret and the old one, while one takes the place of the other; headers of fetch, and text.
  const both = await verifyWebhook(["whsec_AAAA", secret], new Headers(headers), body.toString());
  assert.deepEqual(both, said);
  const bad = [
    ["whsec_AAAA", headers, body],
    [[], headers, body],
    [secret, headers, Buffer.concat([body, Buffer.from(" ")])],
    [secret, { ...headers, "webhook-id": "another" }, body],
    [secret, { ...headers, "webhook-timestamp": String(Number(headers["webhook-timestamp"]) + 1) }, body],
    [secret, { ...headers, "webhook-signature": `v1,é v1, v2,${headers["webhook-signature"].slice(3)}` }, body],
    [secret, {}, body],
    [secret, { ...headers, "webhook-timestamp": "soon" }, body],
    [secret, headers, body, { now: Date.now() + 400_000 }],
    [secret, headers, body, { now: Date.now() - 400_000 }],
  ];
  for (const given of bad) await assert.rejects(verifyWebhook(...given), BadSignature);
  await verifyWebhook(secret, headers, body, { now: Date.now() + 400_000, toleranceMs: 600_000 });
  for (const none of ["no secret", "", "whsec_"]) await assert.rejects(verifyWebhook(none, headers, body), TypeError);
});
