// The console: signing in, and which page is shown.

import { acts } from "./acts.js";
import { choose, chosenDomain, get, may, node, probe, remember, session } from "./api.js";
import { autoscaler } from "./autoscaler.js";
import { broadcasts } from "./broadcasts.js";
import { cells } from "./cells.js";
import { cluster } from "./cluster.js";
import { device } from "./device.js";
import { devices } from "./devices.js";
import { domains } from "./domains.js";
import { address, h, hush } from "./dom.js";
import { events } from "./events.js";
import { clock } from "./format.js";
import { keys } from "./keys.js";
import { links } from "./links.js";
import { modules } from "./modules.js";
import { notification } from "./notification.js";
import { notifications } from "./notifications.js";
import { overview } from "./overview.js";
import { Page } from "./page.js";
import { pushes } from "./pushes.js";
import { queue, queues } from "./queues.js";
import { room } from "./room.js";
import { rooms } from "./rooms.js";
import { search } from "./search.js";
import { send } from "./send.js";
import { sessions } from "./sessions.js";
import { top } from "./top.js";
import { topic } from "./topic.js";
import { topics } from "./topics.js";
import { webhook } from "./webhook.js";
import { webhooks } from "./webhooks.js";

/** Pages by the name in their address. `one` is shown when the address goes on; `whole` needs a key of the whole node. */
const VIEWS = {
  overview: { make: overview, scope: "admin", whole: true, title: "Overview" },
  sessions: { make: sessions, scope: "admin", title: "Sessions" },
  top: { make: top, scope: "admin", title: "Top" },
  cluster: { make: cluster, scope: "admin", whole: true, title: "Cluster" },
  cells: { make: cells, scope: "admin", whole: true, title: "Cells" },
  queues: { make: queues, one: queue, scope: "admin", whole: true, title: "Queues" },
  autoscaler: { make: autoscaler, scope: "admin", whole: true, title: "Autoscaler" },
  modules: { make: modules, scope: "admin", whole: true, title: "Modules" },
  send: { make: send, scope: "send", title: "Send" },
  notifications: { make: notifications, one: notification, scope: "send", title: "Notifications" },
  broadcasts: { make: broadcasts, scope: "broadcast", title: "Broadcasts" },
  events: { make: events, scope: "send", title: "Events" },
  topics: { make: topics, one: topic, scope: "topics", title: "Topics" },
  rooms: { make: rooms, one: room, scope: "rooms", title: "Rooms" },
  links: { make: links, scope: "links", title: "Links" },
  devices: { make: devices, one: device, scope: "enrol", title: "Devices" },
  pushes: { make: pushes, scope: "enrol", title: "Push" },
  domains: { make: domains, scope: "admin", title: "Domains" },
  keys: { make: keys, scope: "admin", title: "API keys" },
  acts: { make: acts, scope: "admin", title: "Acts" },
  webhooks: { make: webhooks, one: webhook, scope: "admin", title: "Webhooks" },
  search: { make: search, title: "Search" },
};
/** How often a node that does not answer is asked, and one that does. */
const PROBE_MS = 1000;
const HEARTBEAT_MS = 5000;
const at = (id) => document.getElementById(id);
const allowed = (name) => (!VIEWS[name].scope || may(VIEWS[name].scope)) && !(VIEWS[name].whole && session.own.domain);
/** Ends what the page that is shown has going on. */
let leaving = new AbortController();

at("sign-in-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = at("sign-in");
  button.disabled = true;
  at("sign-in-error").textContent = "";
  remember(at("key").value.trim());
  await enter();
  button.disabled = false;
});
at("sign-out").addEventListener("click", () => leave(""));
at("domain").addEventListener("change", (event) => { choose(event.target.value); show(); });
at("menu").addEventListener("click", () => menu(at("menu").getAttribute("aria-expanded") !== "true"));
at("search-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const wanted = address("search", at("search").value.trim());
  if (location.hash === wanted) show();
  else location.hash = wanted;
});
at("skip").addEventListener("click", (event) => { event.preventDefault(); at("main").focus(); });
addEventListener("hashchange", show);
// So that a page that asks for nothing notices, too.
setInterval(() => { if (session.own && !node.lost && !document.hidden) probe(); }, HEARTBEAT_MS);
addEventListener("domains", () => { if (session.own) listDomains(); });
node.addEventListener("change", () => {
  at("link-state").textContent = node.lost ? `The node has not answered since ${clock(node.lost)}. The page may be out of date.` : "";
  if (node.lost) watch();
});
session.lost = () => { if (session.own) leave("The node does not know this key any more. Sign in with another."); };
if (session.key) enter();

async function enter() {
  try {
    session.own = await get("/v1/key");
    await listDomains();
  } catch (problem) {
    at("sign-in-error").textContent = problem.status === 401 ? "This is not a key of this node." : problem.message;
    if (problem.status === 401) remember(null);
    session.own = null;
    return;
  }
  at("key").value = "";
  at("key-name").textContent = session.own.name;
  at("gate").hidden = true;
  at("shell").hidden = false;
  for (const entry of at("nav").querySelectorAll("[data-view]")) entry.hidden = !allowed(entry.dataset.view);
  for (const group of at("nav").querySelectorAll(".group")) group.hidden = !group.querySelector("a:not([hidden])");
  show();
}

function leave(why) {
  leaving.abort();
  remember(null);
  session.own = null;
  at("confirm").close("no");
  at("main").replaceChildren();
  at("shell").hidden = true;
  at("gate").hidden = false;
  at("sign-in-error").textContent = why;
  at("key").focus();
}

/** Asks until the node is back. */
async function watch() {
  while (node.lost) {
    await new Promise((done) => setTimeout(done, PROBE_MS));
    if (node.lost) await probe();
  }
}

/** A key of the whole node may act in any domain; one with scope admin can list them. */
async function listDomains() {
  const own = session.own;
  const listed = own.scopes.includes("admin") ? (await get("/v1/admin/domains")).domains.map((d) => d.domain) : [];
  session.domains = listed.length ? listed : [own.domain ?? own.default_domain];
  const wanted = [session.domain, chosenDomain(), own.default_domain].find((name) => session.domains.includes(name));
  choose(wanted ?? session.domains[0]);
  at("domain").replaceChildren(...session.domains.map((name) => h("option", { value: name, selected: name === session.domain }, name)));
  at("domain").disabled = session.domains.length < 2;
}

function menu(open) {
  at("menu").setAttribute("aria-expanded", String(open));
  at("shell").classList.toggle("open", open);
}

function show() {
  if (!session.own) return;
  const [asked, ...params] = read(location.hash);
  const name = VIEWS[asked] && allowed(asked) ? asked : Object.keys(VIEWS).find(allowed);
  const view = VIEWS[name];
  leaving.abort();
  leaving = new AbortController();
  hush();
  menu(false);
  for (const entry of at("nav").querySelectorAll("[data-view]")) {
    if (entry.dataset.view === name) entry.setAttribute("aria-current", "page");
    else entry.removeAttribute("aria-current");
  }
  at("search").value = name === "search" ? params[0] ?? "" : "";
  document.title = `${params[0] && view.one ? `${params[0]} · ` : ""}${view.title} · Carillon`;
  const page = new Page({ params, signal: leaving.signal });
  at("main").replaceChildren((params[0] && view.one ? view.one : view.make)(page));
  scrollTo(0, 0);
}

/** The parts of an address. */
function read(hash) {
  try {
    return hash.slice(1).split("/").map(decodeURIComponent);
  } catch {
    return [""];
  }
}
