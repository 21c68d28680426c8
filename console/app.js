// The console: signing in, and which page is shown.

import { get, may, remember, session } from "./api.js";
import { devices } from "./devices.js";
import { h } from "./dom.js";
import { overview } from "./overview.js";
import { send } from "./send.js";
import { sessions } from "./sessions.js";
import { topics } from "./topics.js";

const VIEWS = {
  overview: { make: overview, scope: "admin", title: "Overview" },
  send: { make: send, scope: "send", title: "Send" },
  topics: { make: topics, scope: "topics", title: "Topics" },
  sessions: { make: sessions, scope: "admin", title: "Sessions" },
  devices: { make: devices, scope: "enrol", title: "Devices" },
};
const at = (id) => document.getElementById(id);
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
at("domain").addEventListener("change", (event) => { session.domain = event.target.value; show(); });
addEventListener("hashchange", show);
session.lost = () => { if (session.own) leave("This key is not known to the node any more. Sign in with another."); };
if (session.key) enter();

async function enter() {
  try {
    session.own = await get("/v1/key");
    await chooseDomain();
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
  for (const link of at("nav").querySelectorAll("[data-view]")) link.hidden = !may(VIEWS[link.dataset.view].scope);
  show();
}

function leave(why) {
  leaving.abort();
  remember(null);
  session.own = null;
  at("main").replaceChildren();
  at("shell").hidden = true;
  at("gate").hidden = false;
  at("sign-in-error").textContent = why;
  at("key").focus();
}

/** A key of the whole node may act in any domain; one with scope admin can list them. */
async function chooseDomain() {
  const own = session.own;
  const listed = own.scopes.includes("admin") ? (await get("/v1/admin/domains")).domains.map((d) => d.domain) : [];
  const names = listed.length ? listed : [own.domain ?? own.default_domain];
  session.domain = names.includes(own.default_domain) ? own.default_domain : names[0];
  at("domain").replaceChildren(...names.map((name) => h("option", { value: name, selected: name === session.domain }, name)));
  at("domain").disabled = names.length < 2;
}

/** Writes the address of a page without showing it anew. */
function go(...segments) {
  history.replaceState(null, "", `#${segments.map(encodeURIComponent).join("/")}`);
}

function show() {
  if (!session.own) return;
  const [asked, ...params] = location.hash.slice(1).split("/").map(decodeURIComponent);
  const allowed = Object.keys(VIEWS).filter((name) => may(VIEWS[name].scope));
  const name = allowed.includes(asked) ? asked : allowed[0];
  leaving.abort();
  leaving = new AbortController();
  at("link-state").textContent = "";
  for (const link of at("nav").querySelectorAll("[data-view]")) {
    if (link.dataset.view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${VIEWS[name].title} · Carillon`;
  const onLive = (live) => { at("link-state").textContent = live ? "" : "Node unreachable, trying again"; };
  at("main").replaceChildren(VIEWS[name].make({ params, go, onLive, signal: leaving.signal }));
}
