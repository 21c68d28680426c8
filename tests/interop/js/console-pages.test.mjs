// The console's pages, each with what it is for: read, changed and removed by an operator, wide and narrow.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { close, go, launch, pictures, says, signedIn } from "./browser.mjs";
import { Peer, Server, unique } from "./harness.mjs";

const LONG = "a-device-with-a-very-long-identifier-0123456789-abcdefghijklmnopqrstuvwxyz-0123456789";
let server, browser;

before(async () => {
  server = await Server.start();
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await server?.end();
});

const notify = async (to, more) => (await server.api("POST", "/v1/notifications", { to, payload: 1, ...more })).results[0].id;
const confirm = (at) => at.click("#confirm-yes");

test("a domain is created, its policy changed, and it is removed once its name is typed", async () => {
  const at = await signedIn(browser, server, "#domains");
  await says(at, "localhost");
  await at.fill("#domain-name", "shop.example");
  await at.selectOption("#domain-sessions", "single");
  await at.click("#domain-edit-submit");
  await at.waitForSelector('[data-domain="shop.example"]');
  assert.equal((await server.api("GET", "/v1/admin/domains/shop.example")).policy.sessions, "single");
  // It can be chosen for the other pages at once.
  await at.waitForSelector('#domain option[value="shop.example"]', { state: "attached" });
  await at.click('[data-domain="shop.example"] button:has-text("Policy")');
  await says(at, "Policy of shop.example");
  await at.check("#domain-registration");
  await at.check("#domain-archive");
  await at.fill("#domain-archive-days", "30");
  await at.fill("#domain-resumption", "90");
  await at.selectOption("#domain-rooms-create", "admin");
  await at.fill("#domain-rooms-max", "500");
  await says(at, "Quotas of shop.example");
  await at.waitForSelector("[data-quota=topics]");
  await at.click(".quotas summary");
  await at.fill("#domain-topics_max", "1");
  await at.fill("#domain-bytes_out_per_second", "1000000");
  await pictures(at, "domain-quotas");
  await at.click("#domain-edit-submit");
  await at.waitForSelector('[data-domain="shop.example"] .badge.warn');
  const { policy } = await server.api("GET", "/v1/admin/domains/shop.example");
  assert.deepEqual([policy.sessions, policy.registration, policy.resumption_ms_max], ["single", true, 90_000]);
  assert.deepEqual([policy.archive, policy.archive_days], [true, 30]);
  assert.deepEqual([policy.rooms_create, policy.rooms_owned_max, policy.rooms_max], ["admin", 0, 500]);
  assert.deepEqual([policy.topics_max, policy.bytes_out_per_second, policy.accounts_max], [1, 1_000_000, 0]);
  await server.api("PUT", "/v1/topics/only?domain=shop.example", {});
  await assert.rejects(server.api("PUT", "/v1/topics/another?domain=shop.example", {}), /too-many-topics|409/);
  await server.eventually("/v1/admin/domains/shop.example/usage", ({ quotas }) => quotas.find((q) => q.quota === "topics").refused === 1);
  await at.click('[data-domain="shop.example"] button:has-text("Policy")');
  await says(at, "full", "[data-quota=topics]");
  const cells = await at.$$eval("[data-quota=topics] td", (all) => all.map((cell) => cell.innerText.trim()));
  assert.deepEqual(cells, ["topics", "1 full", "1", "1"]);
  await at.click('button:has-text("Cancel")');
  await says(at, "30 days");
  await says(at, "administrators only, 500 rooms at most");
  await pictures(at, "domains");
  await at.click('[data-domain="shop.example"] button:has-text("Remove")');
  assert.ok(await at.isDisabled("#confirm-yes"));
  await at.fill("#confirm-typed", "shop.example");
  await pictures(at, "domain-removal");
  await confirm(at);
  await at.waitForSelector('[data-domain="shop.example"]', { state: "detached" });
  assert.ok(!(await server.api("GET", "/v1/admin/domains")).domains.some((d) => d.domain === "shop.example"));
  await close(at);
});

test("a key is created with scopes and a domain, shown once, and removed", async () => {
  const at = await signedIn(browser, server, "#keys");
  await says(at, "this key");
  await at.fill("#key-new-name", "back end of the shop");
  await at.click("#key-new-submit");
  await says(at, "Choose at least one scope.", "#key-new-error");
  await at.check("#scope-send");
  await at.check("#scope-chat");
  await at.selectOption("#key-domain", "localhost");
  await at.selectOption("#key-expires", "30");
  await at.click("#key-new-submit");
  await at.waitForSelector("[data-testid=secret] code");
  const key = await at.textContent("[data-testid=secret] code");
  const own = await fetch(`${server.http}/v1/key`, { headers: { authorization: `Bearer ${key}` } }).then((answer) => answer.json());
  assert.deepEqual([own.name, own.domain, own.scopes], ["back end of the shop", "localhost", ["send", "chat"]]);
  const left = (Date.parse(own.expires_at) - Date.now()) / 86_400_000;
  assert.ok(left > 29 && left < 31, own.expires_at);
  await says(at, "back end of the shop");
  await pictures(at, "keys");
  await go(at, "#domains");
  await says(at, "All domains");
  await go(at, "#keys");
  await at.waitForSelector(`[data-key="${own.id}"]`);
  assert.equal(await at.locator("[data-testid=secret]").count(), 0);
  await at.click(`[data-key="${own.id}"] button`);
  await confirm(at);
  await at.waitForSelector(`[data-key="${own.id}"]`, { state: "detached" });
  const refused = await fetch(`${server.http}/v1/key`, { headers: { authorization: `Bearer ${key}` } });
  assert.equal(refused.status, 401);
  await close(at);
});

test("a webhook is created, tried, changed and removed", async () => {
  const at = await signedIn(browser, server, "#webhooks");
  await says(at, "No webhooks");
  await at.fill("#webhook-url", "https://receiver.invalid/hook");
  await at.uncheck("#webhook-replaced");
  await at.click("#webhook-new-submit");
  await at.waitForSelector("[data-testid=secret] code");
  const [made] = (await server.api("GET", "/v1/webhooks")).webhooks;
  assert.deepEqual(made.states, ["acknowledged", "expired", "cancelled", "dropped", "opened"]);
  await at.waitForSelector(`[data-webhook="${made.id}"]`);
  await pictures(at, "webhooks");
  await go(at, `#webhooks/${made.id}`);
  await says(at, "https://receiver.invalid/hook");
  await at.click("[data-testid=webhook-test]");
  await at.waitForFunction(() => /Not taken/.test(document.getElementById("toasts").textContent));
  await at.uncheck("#webhook-enabled");
  await at.click("#webhook-submit");
  await at.waitForFunction(() => /disabled/.test(document.querySelector(".page-title").textContent));
  const changed = await server.api("GET", `/v1/webhooks/${made.id}`);
  assert.deepEqual([changed.status, changed.states], ["disabled", made.states]);
  await pictures(at, "webhook");
  await at.click("[data-testid=webhook-remove]");
  await confirm(at);
  await says(at, "No webhooks");
  assert.deepEqual((await server.api("GET", "/v1/webhooks")).webhooks, []);
  await close(at);
});

test("the node is drained, which the overview shows, and takes sessions again", async () => {
  const device = await Peer.connect(server, await server.account("drained"));
  const at = await signedIn(browser, server, "#overview");
  await at.waitForSelector("#drain-form");
  await at.fill("#drain-over", "3600");
  await at.fill("#drain-to", "other.example.net:5222");
  await at.click("#drain-submit");
  await confirm(at);
  await at.waitForFunction(() => /of 1( session)? left.*Clients are sent to other\.example\.net:5222/.test(document.querySelector("[data-testid=drain-text]")?.textContent));
  await at.waitForFunction(() => /Not taking sessions/.test(document.querySelector("[data-testid=node-state]").textContent));
  await pictures(at, "drain");
  await at.click("[data-testid=drain-cancel]");
  await at.waitForSelector("#drain-form");
  await at.waitForFunction(() => /^Taking sessions/.test(document.querySelector("[data-testid=node-state]").textContent));
  await device.end();
  await close(at);
});

test("who has only some scopes sees only their pages", async () => {
  const { key } = await server.api("POST", "/v1/admin/keys", { name: "sender", scopes: ["send"], domain: "localhost" });
  const at = await signedIn(browser, { ...server, key });
  await says(at, "New notification");
  const shown = await at.$$eval("#nav [data-view]:not([hidden])", (links) => links.map((link) => link.dataset.view));
  assert.deepEqual(shown, ["send", "notifications", "events"]);
  await close(at);
});

test("a notification is found by its id, shows every state it reached, and is cancelled", async () => {
  const user = await server.account("waits");
  const id = await notify(user, { ttl: 600, collapse_key: "score" });
  const at = await signedIn(browser, server, `#notifications/${id}`);
  await at.waitForSelector("#path [data-state=stored]");
  const trace = await server.api("GET", `/v1/notifications/${id}`);
  for (const member of ["accepted_at", "stored_at"]) {
    assert.equal(await at.getAttribute(`[data-time=${member}]`, "datetime"), trace[member]);
  }
  await pictures(at, "notification");
  await at.click("[data-testid=cancel]");
  await confirm(at);
  await at.waitForSelector("#path [data-state=cancelled]");
  assert.equal((await server.api("GET", `/v1/notifications/${id}`)).state, "cancelled");
  assert.equal(await at.locator("[data-testid=cancel]").count(), 0);

  // Another page follows it as it happens.
  const next = await notify(user);
  await go(at, `#notifications/${next}`);
  await at.waitForSelector("#path [data-state=stored]");
  const device = await Peer.connect(server, user);
  await at.waitForSelector("#path [data-state=acknowledged]");
  await pictures(at, "notification-acknowledged");
  await close(at);
  await device.end();
});

test("events are followed, filtered and paused", async () => {
  const [first, second] = [await server.account("one"), await server.account("two")];
  const at = await signedIn(browser, server, "#events");
  await at.waitForFunction(() => document.querySelector("[data-testid=live]")?.textContent === "Live");
  await pictures(at, "events-none");
  const [a, b] = [await notify(first), await notify(second)];
  await at.waitForSelector(`[data-event="${a}"]`);
  await at.waitForSelector(`[data-event="${b}"]`);
  await pictures(at, "events");
  await at.fill("#events-text", first);
  await at.waitForSelector(`[data-event="${b}"]`, { state: "detached" });
  assert.ok(await at.locator(`[data-event="${a}"]`).count() > 0);
  await at.fill("#events-text", "");
  await at.check("[data-testid=state-cancelled]", { force: true });
  await says(at, "No event matches");
  await server.api("DELETE", `/v1/notifications/${a}`);
  await at.waitForSelector(`[data-event="${a}"][data-state=cancelled]`);
  await at.uncheck("[data-testid=state-cancelled]", { force: true });
  await at.click("#events-pause");
  const c = await notify(first);
  await says(at, "waiting", "[data-testid=events-note]");
  await at.waitForFunction(() => /paused: [1-9]/.test(document.querySelector("[data-testid=events-note]").textContent));
  assert.equal(await at.locator(`[data-event="${c}"]`).count(), 0);
  await at.click("#events-pause");
  await at.waitForSelector(`[data-event="${c}"]`);
  // The list is bounded: of 230 more, the last 200 events are kept.
  for (let i = 0; i < 230; i += 1) await notify(second, { audience: "active" });
  await at.waitForFunction(() => document.querySelectorAll("[data-event]").length === 200);
  await at.waitForSelector(`[data-event="${a}"]`, { state: "detached" });
  await at.fill("#events-text", "nobody");
  await says(at, "No event matches");
  await close(at);
});

test("a device is seen in detail: sent to, disabled, given a new secret, removed", async () => {
  const user = await server.account("detail");
  const topic = unique("news/");
  await server.api("PUT", `/v1/topics/${encodeURIComponent(topic)}`, {});
  const device = await Peer.connect(server, user, { resource: "phone" });
  const at = await signedIn(browser, server, "#devices");
  await at.click(`[data-device="${user}"] a`);
  await at.waitForSelector(`[data-jid="${device.jid}"]`);
  await at.fill("#follow-topic", topic);
  await at.click("#follow-submit");
  await at.waitForSelector(`#main a[href="#topics/${encodeURIComponent(topic)}"]`);
  assert.deepEqual((await server.api("GET", `/v1/devices/${user}/subscriptions`)).topics, [topic]);
  await at.fill("#send-payload", '"hello"');
  await at.click("#send-submit");
  await device.take((s) => s.attrs.from === "push.localhost", "the notification");
  await says(at, "The notification was accepted.");
  await pictures(at, "device");
  await at.click("[data-testid=device-rotate]");
  await confirm(at);
  await at.waitForSelector("[data-testid=secret] code");
  const secret = await at.textContent("[data-testid=secret] code");
  const valid = await server.api("POST", `/v1/devices/${user}/validate`, { secret });
  assert.equal(valid.valid, true);
  await at.click("[data-testid=device-toggle]");
  await confirm(at);
  await says(at, "disabled", "#main h1");
  assert.equal((await server.api("GET", `/v1/devices/${user}`)).state, "disabled");
  await at.click("[data-testid=device-remove]");
  await confirm(at);
  await says(at, "All devices");
  await at.waitForFunction((user) => !document.querySelector(`[data-device="${user}"]`), user);
  await close(at);
});

test("a long list is shown page by page, its last row uncovered, and long names stay inside", async () => {
  for (let i = 0; i < 55; i += 1) await server.api("POST", "/v1/devices", { id: `many${String(i).padStart(2, "0")}`, secret: "secret" });
  await server.api("POST", "/v1/admin/accounts", { jid: LONG, password: "secret" });
  const device = await Peer.connect(server, LONG, { resource: "a-resource-that-is-not-short-either" });
  const at = await signedIn(browser, server, "#devices");
  await at.waitForSelector("[data-testid=devices-more]");
  for (const [width, height] of [[1280, 900], [390, 844]]) {
    await at.setViewportSize({ width, height });
    const last = await at.locator("[data-testid=devices] tbody tr:last-child").boundingBox();
    const more = await at.locator("[data-testid=devices-more]").boundingBox();
    assert.ok(more.y >= last.y + last.height, `"Show more" at ${more.y} covers a row that ends at ${last.y + last.height}`);
  }
  await pictures(at, "devices");
  await at.click("[data-testid=devices-more]");
  await at.waitForSelector('[data-device="many54"]');
  await go(at, "#sessions");
  await at.waitForSelector(`[data-jid="${device.jid}"]`);
  await pictures(at, "sessions");
  await go(at, `#devices/${encodeURIComponent(device.bare)}`);
  await at.waitForSelector(`[data-jid="${device.jid}"]`);
  await pictures(at, "device-long");
  await close(at);
  await device.end();
});

test("a topic is created, published to, its settings changed, and it is removed", async () => {
  const user = await server.account("follows");
  const at = await signedIn(browser, server, "#topics");
  await at.fill("#topic-name", "news/today");
  await at.fill("#topic-title", "News of the day");
  await at.fill("#topic-max-items", "3");
  await at.click("#topic-submit");
  await says(at, "Kept items (0 of at most 3)");
  await server.api("PUT", `/v1/devices/${user}/subscriptions/news%2Ftoday`);
  await at.fill("#publish-payload", '{ "headline": "It works" }');
  await at.fill("#publish-id", "first");
  await at.click("#publish-submit");
  await at.waitForSelector('[data-item="first"]');
  await says(at, "Kept items (1 of at most 3)");
  await says(at, `${user}@localhost`);
  await at.waitForFunction(() => /Followers\s+1\s+Sessions following now\s+0\s+Items published since the node started\s+1/.test(document.querySelector("#main").innerText));
  await pictures(at, "topic");
  await at.fill("#topic-max-items", "7");
  await at.click("#topic-submit");
  await says(at, "of at most 7");
  const { config } = await server.api("GET", "/v1/topics/news%2Ftoday");
  assert.deepEqual([config.max_items, config.title], [7, "News of the day"]);
  await at.click('[data-item="first"] button');
  await says(at, "No items");
  await go(at, "#topics");
  await says(at, "News of the day");
  await pictures(at, "topics");
  await go(at, "#topics/news%2Ftoday");
  await at.click("[data-testid=topic-remove]");
  await confirm(at);
  await says(at, "Topics");
  await at.waitForSelector('[data-topic="news/today"]', { state: "detached" });
  await close(at);
});

test("search finds devices, sessions, topics and notifications from every page", async () => {
  const user = await server.account("sought");
  await server.api("PUT", "/v1/topics/sought-after", {});
  const device = await Peer.connect(server, user);
  const id = await notify(user);
  const at = await signedIn(browser, server, "#keys");
  await at.fill("#search", "sought");
  await at.press("#search", "Enter");
  await says(at, `${user}@localhost`, "[data-testid=results]");
  await says(at, "sought-after", "[data-testid=results]");
  await at.fill("#search", `${user}@localhost`);
  await at.press("#search", "Enter");
  await says(at, device.jid, "[data-testid=results]");
  await pictures(at, "search");
  await at.fill("#search", id.toLowerCase());
  await at.press("#search", "Enter");
  await at.waitForFunction((id) => location.hash === `#notifications/${id}`, id);
  await at.waitForSelector("#path [data-state=acknowledged]");
  await at.fill("#search", "there is nothing of this name");
  await at.press("#search", "Enter");
  await says(at, "Nothing found");
  await pictures(at, "search-nothing");
  await close(at, true);
  await device.end();
});

test("at 390 px every page is reached through the menu", async () => {
  const at = await signedIn(browser, server, "#overview");
  await at.setViewportSize({ width: 390, height: 844 });
  for (const view of ["sessions", "send", "notifications", "events", "topics", "devices", "domains", "keys", "overview"]) {
    await at.click("#menu");
    const box = await at.locator(`[data-view=${view}]`).boundingBox();
    assert.ok(box.x >= 0 && box.x + box.width <= 390, `${view} is cut: ${JSON.stringify(box)}`);
    if (view === "sessions") await pictures(at, "menu").then(() => at.setViewportSize({ width: 390, height: 844 }));
    await at.click(`[data-view=${view}]`);
    await at.waitForFunction((view) => document.querySelector(`[data-view=${view}]`).getAttribute("aria-current") === "page", view);
    assert.ok(await at.isHidden("#nav"));
  }
  await close(at);
});

test("notifications are listed by account and state, and what is on the way to a device is shown with it", async () => {
  const [user, other] = [await server.account("listed"), await server.account("other")];
  const [kept, gone, others] = [await notify(user, { collapse_key: "a" }), await notify(user), await notify(other)];
  await server.api("DELETE", `/v1/notifications/${gone}`);
  const at = await signedIn(browser, server, "#notifications");
  for (const id of [kept, gone, others]) await at.waitForSelector(`[data-notification="${id}"]`);
  await pictures(at, "notifications");
  await at.fill("#notifications-to", user);
  await at.press("#notifications-to", "Enter");
  await at.waitForSelector(`[data-notification="${others}"]`, { state: "detached" });
  await at.selectOption("#notifications-state", "cancelled");
  await at.waitForSelector(`[data-notification="${kept}"]`, { state: "detached" });
  assert.equal(await at.locator(`[data-notification="${gone}"]`).count(), 1);
  await go(at, `#devices/${user}%40localhost`);
  await at.waitForSelector(`[data-testid=waiting] [data-notification="${kept}"]`);
  assert.equal(await at.locator("[data-testid=waiting] tbody tr").count(), 1);
  await pictures(at, "device-waiting");
  await at.click(`[data-notification="${kept}"] a[href^="#notifications"]`);
  await at.waitForSelector("#path [data-state=stored]");
  const { expires_at } = await server.api("GET", `/v1/notifications/${kept}`);
  assert.equal(await at.getAttribute("[data-time=expires_at]", "datetime"), expires_at);
  assert.match(await at.innerText("#main"), /Collapse key\s+a\n/);
  await close(at);
});
