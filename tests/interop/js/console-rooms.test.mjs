// The console's pages of rooms, and of an account with those whom it talks with.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { close, go, launch, pictures, says, signedIn } from "./browser.mjs";
import { Peer, Server, unique, xml } from "./harness.mjs";

let server, browser, reader;

before(async () => {
  server = await Server.start({ "archive.enabled": true });
  browser = await launch();
  // Who reads what was said needs a scope that `admin` does not include.
  const scopes = ["admin", "read_messages"];
  ({ key: reader } = await server.api("POST", "/v1/admin/keys", { name: "reader", scopes }));
});
after(async () => {
  await browser?.close();
  await server?.end();
});

const confirm = (at) => at.click("#confirm-yes");
const MUC = "http://jabber.org/protocol/muc";

/** A client in a room. */
async function enters(peer, room, nick) {
  await peer.xmpp.send(xml("presence", { to: `${room}/${nick}` }, xml("x", MUC)));
  await peer.take((s) => s.is("presence") && s.attrs.from === `${room}/${nick}`, `${nick} in ${room}`);
}

test("rooms are listed, found by how their names begin, and created", async () => {
  const [tea, coffee] = [unique("tea"), unique("coffee")];
  for (const name of [tea, coffee]) await server.api("PUT", `/v1/rooms/${name}`, { title: `All about ${name}`, public: name === tea });
  const at = await signedIn(browser, server, "#rooms");
  await at.waitForSelector(`[data-room="${tea}@rooms.localhost"]`);
  await says(at, "hidden", `[data-room="${coffee}@rooms.localhost"]`);
  await pictures(at, "rooms");
  await at.fill("#room-prefix", "tea");
  await at.press("#room-prefix", "Enter");
  await at.waitForSelector(`[data-room="${coffee}@rooms.localhost"]`, { state: "detached" });
  assert.equal(await at.locator("[data-room]").count(), 1);
  const made = unique("milk");
  await at.fill("#room-name", made);
  await at.fill("#room-title", "Milk");
  await at.check("#room-members-only");
  await at.click("#room-submit");
  await says(at, `${made}@rooms.localhost`);
  const { config } = await server.api("GET", `/v1/rooms/${made}`);
  assert.deepEqual([config.title, config.members_only, config.persistent], ["Milk", true, true]);
  // It is found from everywhere.
  await at.fill("#search", made);
  await at.press("#search", "Enter");
  await says(at, `${made}@rooms.localhost`, "[data-testid=results]");
  await close(at, true);
});

test("one room is configured, its list changed, somebody removed, and the room once its name is typed", async () => {
  const name = unique("kettle");
  const room = `${name}@rooms.localhost`;
  await server.api("PUT", `/v1/rooms/${name}`, { title: "Kettle" });
  const [ann, ben] = [await Peer.connect(server, await server.account("ann")), await Peer.connect(server, await server.account("ben"))];
  await enters(ann, room, "Ann");
  await enters(ben, room, "Ben");
  const at = await signedIn(browser, server, `#rooms/${encodeURIComponent(room)}`);
  await at.waitForSelector('[data-occupant="Ben"]');
  await says(at, "is shown to keys with the scope read_messages");
  await at.fill("#room-description", "Where water boils");
  await at.check("#room-moderated");
  await at.click("#room-settings-submit");
  await ann.take((s) => s.is("message") && s.getChild("x", `${MUC}#user`)?.getChildren("status").some((code) => code.attrs.code === "104"), "the change");
  const { config } = await server.api("GET", `/v1/rooms/${name}`);
  assert.deepEqual([config.title, config.description, config.moderated, config.public], ["Kettle", "Where water boils", true, true]);
  await at.fill("#member-jid", ann.bare.split("@")[0]);
  await at.selectOption("#member-affiliation", "owner");
  await at.click("#member-submit");
  await at.waitForSelector(`[data-member="${ann.bare}"]`);
  await says(at, "owner", `[data-member="${ann.bare}"]`);
  await pictures(at, "room");
  await at.click('[data-occupant="Ben"] [data-testid=room-kick]');
  await confirm(at);
  const kicked = (s) => s.is("presence") && s.attrs.type === "unavailable" && s.attrs.from === `${room}/Ben`;
  const told = await ben.take(kicked, "that Ben was removed");
  assert.ok(told.getChild("x", `${MUC}#user`).getChildren("status").some((code) => code.attrs.code === "307"));
  await at.waitForSelector('[data-occupant="Ben"]', { state: "detached" });
  await at.click("[data-testid=room-remove]");
  assert.ok(await at.isDisabled("#confirm-yes"));
  await at.fill("#confirm-typed", name);
  await confirm(at);
  await at.waitForFunction(() => location.hash === "#rooms");
  await ann.take((s) => s.is("presence") && s.getChild("x", `${MUC}#user`)?.getChild("destroy"), "the end of the room");
  await assert.rejects(server.api("GET", `/v1/rooms/${name}`), /404/);
  await close(at);
  await ann.end();
  await ben.end();
});

test("what was said is read with the scope for it, and noted, and a message is retracted", async () => {
  const name = unique("gossip");
  await server.api("PUT", `/v1/rooms/${name}`, {});
  for (const body of ["The first of all", "Nobody is to know"]) await server.api("POST", `/v1/rooms/${name}/messages`, { body });
  const at = await signedIn(browser, { ...server, key: reader }, `#rooms/${name}@rooms.localhost`);
  assert.ok(!(await at.innerText("body")).includes("Nobody is to know"));
  await at.click("[data-testid=messages-read]");
  await says(at, "Nobody is to know");
  await pictures(at, "room-messages");
  const acts = await server.api("GET", "/v1/admin/audit");
  assert.ok(JSON.stringify(acts).includes(`/v1/rooms/${name}%40rooms.localhost/messages`) || JSON.stringify(acts).includes(`${name}@rooms.localhost/messages`), JSON.stringify(acts));
  await at.click('tr:has-text("Nobody is to know") button');
  await confirm(at);
  await at.waitForFunction(() => !document.querySelector("#main").innerText.includes("Nobody is to know"));
  await says(at, "The first of all");
  await close(at);
});

test("an account's page shows its contacts and conversations, and contents only to who may read them", async () => {
  const [cleo, dora] = [await Peer.connect(server, await server.account("cleo")), await Peer.connect(server, await server.account("dora"))];
  await server.api("PUT", `/v1/accounts/${cleo.bare}/roster/${dora.bare}`, { name: "Dora", groups: ["Friends"], mutual: true });
  await cleo.chat(dora.bare, "Meet me at noon");
  await dora.message("Meet me at noon");
  await server.eventually(`/v1/accounts/${dora.bare}/conversations`, (page) => page.conversations.length === 1);
  const at = await signedIn(browser, server, `#devices/${cleo.bare}`);
  await says(at, "Dora · Friends", `[data-contact="${dora.bare}"]`);
  await at.click("[data-testid=conversations-show]");
  await at.waitForSelector(`[data-conversation="${dora.bare}"]`);
  assert.equal(await at.locator("[data-testid=conversation-read]").count(), 0);
  await close(at);
  const may = await signedIn(browser, { ...server, key: reader }, `#devices/${dora.bare}`);
  await may.click("[data-testid=conversations-show]");
  await says(may, "1 unread");
  assert.ok(!(await may.innerText("body")).includes("Meet me at noon"));
  await may.click("[data-testid=conversation-read]");
  await says(may, "Meet me at noon");
  await pictures(may, "account");
  await close(may);
  await cleo.end();
  await dora.end();
});

test("an account of a domain without archives has contacts and no conversations", async () => {
  await server.api("PUT", "/v1/admin/domains/quiet.example", { archive: false });
  await server.api("POST", "/v1/admin/accounts", { jid: "eve@quiet.example", password: "secret" });
  const at = await signedIn(browser, server);
  await at.selectOption("#domain", "quiet.example");
  await go(at, "#devices/eve@quiet.example");
  await says(at, "No contacts");
  await at.click("[data-testid=conversations-show]");
  await says(at, "The domain keeps no archives");
  await close(at, true);
});
