// What there is under a name: devices, sessions, topics, rooms, a notification.

import { here, may, path, session } from "./api.js";
import { address, badge, empty, h, link } from "./dom.js";
import { many } from "./format.js";
import { card, failure, heading } from "./page.js";
import { pill } from "./path.js";

// What no local part of an address has (RFC 7622 §3.3.1).
const NO_NAME = /[\s"&'/:<>]/;
const SHOWN_MAX = 10;
const ID = /^[0-9A-HJKMNP-TV-Z]{26}$/i;

export function search(page) {
  const asked = (page.params[0] ?? "").trim();
  const where = h("div", { class: "stack", "data-testid": "results", "aria-live": "polite" }, h("p", { class: "loading" }, "Searching…"));

  async function load() {
    if (!asked) return where.replaceChildren(h("section", { class: "card" }, empty("Nothing to search for", "Enter a device, a JID, a topic or the id of a notification.")));
    const found = (await Promise.all([notification(), devices(), sessions(), topics(), rooms()].map((part) => part.catch(failed)))).filter(Boolean);
    if (found.length === 1 && found[0].only) return location.replace(found[0].only);
    return where.replaceChildren(...(found.length ? found.map((part) => part.element) : [h("section", { class: "card" }, empty("Nothing found", nothing()))]));
  }

  const nothing = () => ID.test(asked) ? "The node knows no notification with this id, and no device, topic or room of this name." : `${session.domain} has no device, topic or room whose name begins with “${asked}”.`;

  const failed = (problem) => ({ element: h("section", { class: "card" }, failure(problem, load)) });

  async function notification() {
    if (!may("send") || !ID.test(asked)) return null;
    const n = await known(page.get(path("v1", "notifications", asked.toUpperCase())));
    return n && part("Notification", [[link(n.id, "notifications", n.id), pill(n.state), n.to]], address("notifications", n.id));
  }

  async function devices() {
    if (!may("enrol")) return null;
    const [bare] = asked.split("/");
    const [local, domain = session.domain] = bare.split("@");
    if (!local || !(session.domains.includes(domain))) return null;
    const exact = known(page.get(path("v1", "devices", local.toLowerCase()), { domain }));
    const next = bare.includes("@") ? null : page.get("/v1/devices", { domain, after: local.toLowerCase(), limit: SHOWN_MAX });
    const list = [await exact, ...((await known(next))?.devices ?? [])].filter((d) => d?.id.startsWith(local.toLowerCase())).slice(0, SHOWN_MAX);
    return list.length ? part("Devices", list.map((d) => [link(d.jid, "devices", d.jid), badge(d.state, d.state === "enabled" ? "good" : "bad"), d.pending ? `${many(d.pending, "notification")} waiting` : ""])) : null;
  }

  async function sessions() {
    if (!may("admin")) return null;
    const [bare] = asked.split("/");
    const [, domain = session.domain] = bare.split("@");
    const answer = session.domains.includes(domain) ? await known(page.get("/v1/admin/sessions", { domain, account: bare, limit: SHOWN_MAX })) : null;
    return answer?.sessions.length ? part("Sessions", answer.sessions.map((s) => [link(s.jid, "sessions", bare), badge(s.presence), s.address])) : null;
  }

  async function topics() {
    if (!may("topics")) return null;
    const exact = known(page.get(path("v1", "topics", asked), here()));
    const next = known(page.get("/v1/topics", here({ after: asked, limit: SHOWN_MAX })));
    const list = [await exact, ...((await next)?.topics ?? [])].filter((t) => t?.name.startsWith(asked)).slice(0, SHOWN_MAX);
    return list.length ? part("Topics", list.map((t) => [link(t.name, "topics", t.name), t.config.title ?? "", ""])) : null;
  }

  async function rooms() {
    const begins = asked.split("@")[0];
    if (!may("rooms") || NO_NAME.test(begins)) return null;
    const kinds = ["muc", "muclight"].map((kind) => known(page.get("/v1/rooms", here({ kind, prefix: begins, limit: SHOWN_MAX }))));
    const list = (await Promise.all(kinds)).flatMap((answer) => answer?.rooms ?? []).filter((r) => r.jid.startsWith(asked.toLowerCase())).slice(0, SHOWN_MAX);
    return list.length ? part("Rooms", list.map((r) => [link(r.jid, "rooms", r.jid), r.title, r.public ? "" : badge("hidden")])) : null;
  }

  page.load(load);
  return h("div", {}, heading("Search", asked && `Results for “${asked}” in ${session.domain}`), where);
}

/** A group of results; `only` is where it leads when nothing else was found. */
function part(title, rows, only) {
  return { only, element: card(title, h("ul", { class: "lines" }, rows.map(([name, ...more]) => h("li", { class: "row between" }, h("span", { class: "break" }, name), h("span", { class: "row tight muted small" }, more))))) };
}

/** What was asked for, or null when there is none of this name. */
async function known(answer) {
  try {
    return await answer;
  } catch (problem) {
    if (problem.status === 404 || problem.status === 400 || problem.status === 422) return null;
    throw problem;
  }
}
