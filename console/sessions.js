// Live sessions, and ending them.

import { del, get, here, path } from "./api.js";
import { badge, confirm, empty, h, moment, toast } from "./dom.js";

const KINDS = { available: "good", chat: "good", away: "warn", xa: "warn", dnd: "bad" };
const COLUMNS = ["Session", "Presence", "Transport", "Address", "Topics", "Unconfirmed", "Since", ""];

export function sessions({ signal }) {
  const account = h("input", { id: "session-account", "data-testid": "session-account", type: "search", placeholder: "alice", autocomplete: "off", autocapitalize: "none", "aria-label": "Only the sessions of this account" });
  const where = h("div", {});
  const note = h("p", { class: "muted small below-card" });

  async function load() {
    try {
      const page = await get("/v1/admin/sessions", here({ account: account.value.trim() || undefined, limit: 200 }));
      if (signal.aborted) return;
      note.textContent = page.sessions.length >= 200 ? "The first 200. Name an account to see its own." : `${page.sessions.length} live`;
      const sorted = page.sessions.sort((a, b) => a.jid.localeCompare(b.jid));
      where.replaceChildren(sorted.length ? table(sorted) : empty("No sessions", account.value ? "This account is not connected." : "No one is connected at the moment."));
    } catch (problem) {
      where.replaceChildren(h("p", { class: "error-text", role: "alert" }, problem.message));
    }
  }

  function table(list) {
    return h("div", { class: "table-wrap" }, h("table", { "data-testid": "sessions" },
      h("thead", {}, h("tr", {}, COLUMNS.map((t) => h("th", { scope: "col" }, t || h("span", { class: "visually-hidden" }, "Actions"))))),
      h("tbody", {}, list.map(row))));
  }

  function row(s) {
    return h("tr", { "data-jid": s.jid },
      h("td", { class: "mono" }, s.jid), h("td", {}, badge(s.presence, KINDS[s.presence])), h("td", {}, s.transport),
      h("td", { class: "mono muted" }, s.address), h("td", { class: "num" }, String(s.topics)),
      h("td", { class: "num" }, s.stream_management || s.unacknowledged ? String(s.unacknowledged) : "–"),
      h("td", { class: "when" }, moment(s.since)),
      h("td", { class: "actions" }, h("button", { class: "button quiet danger", type: "button", onclick: () => kick(s.jid) }, "End")));
  }

  async function kick(jid) {
    if (!(await confirm("End this session?", `${jid} is disconnected. It may log in again.`, "End session"))) return;
    try {
      const ended = await del(path("v1", "admin", "sessions", jid), here());
      toast(ended.sessions_ended ? "The session is ended." : "It had ended already.");
      load();
    } catch (problem) {
      toast(problem.message, "bad");
    }
  }

  const search = (event) => { event.preventDefault(); load(); };
  load();
  const timer = setInterval(load, 5000);
  signal.addEventListener("abort", () => clearInterval(timer));
  return h("div", {},
    h("div", { class: "page-head" }, h("div", {}, h("h1", {}, "Sessions"), h("p", { class: "muted" }, "Who is connected now. Refreshed every five seconds.")),
      h("form", { class: "row search", role: "search", onsubmit: search }, account, h("button", { class: "button", type: "submit" }, "Find"))),
    h("section", { class: "card" }, where), note);
}
