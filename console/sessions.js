// Live sessions, and ending them.

import { del, here, path } from "./api.js";
import { badge, button, confirm, empty, h, input, link } from "./dom.js";
import { many, moment } from "./format.js";
import { failure, heading, row, table } from "./page.js";

const KINDS = { available: "good", chat: "good", away: "warn", xa: "warn", dnd: "bad" };
const WORDS = { xa: "extended away", dnd: "do not disturb", chat: "free for chat" };
const COLUMNS = ["Session", "Presence", "Transport", "Address", "Topics", "Not acknowledged", "Since", ""];
const SHOWN_MAX = 200;

export function sessions(page) {
  const account = input("session-account", { type: "search", placeholder: "alice", value: page.params[0], "aria-label": "Show only the sessions of this account" });
  const where = h("div", {}, h("p", { class: "loading" }, "Loading…"));
  const note = h("div", { class: "card-foot muted small" });

  async function load() {
    try {
      const named = account.value.trim();
      const answer = await page.get("/v1/admin/sessions", here({ account: named || undefined, limit: SHOWN_MAX }));
      note.textContent = answer.sessions.length >= SHOWN_MAX ? `The first ${SHOWN_MAX} sessions. Enter an account to see its sessions.` : many(answer.sessions.length, "session");
      where.replaceChildren(answer.sessions.length ? sessionTable(page, answer.sessions, load)
        : empty("No sessions", named ? "This account is not connected." : "Nobody is connected to this domain."));
    } catch (problem) {
      note.textContent = "";
      where.replaceChildren(failure(problem, load));
    }
  }

  const search = (event) => { event.preventDefault(); load(); };
  page.repeat(5000, load);
  return h("div", {},
    heading("Sessions", "Who is connected now. Updated every five seconds.",
      h("form", { class: "row search", role: "search", onsubmit: search }, account, h("button", { class: "button", type: "submit" }, "Find"))),
    h("section", { class: "card" }, where, note));
}

/** Sessions in a table; `changed` is called when one was ended. */
export function sessionTable(page, list, changed) {
  const sorted = [...list].sort((a, b) => a.jid.localeCompare(b.jid));
  return table("sessions", COLUMNS, sorted.map((s) => row(COLUMNS, { "data-jid": s.jid },
    ["mono jid", jid(s.jid)], s.state === "parked" ? badge("parked", "warn") : badge(WORDS[s.presence] ?? s.presence, KINDS[s.presence]), s.transport ? `${s.transport}${s.tls ? ", TLS" : ""}` : "–", ["mono muted", s.address ?? ""], ["num", String(s.topics)],
    ["num", s.stream_management || s.unacknowledged ? String(s.unacknowledged) : "–"], ["when", moment(s.since)],
    ["actions", button("End", "quiet danger", () => end(page, s.jid, changed))])));
}

/** A full JID that leads to its account. */
function jid(full) {
  const at = full.indexOf("/");
  const bare = at < 0 ? full : full.slice(0, at);
  return [link(bare, "devices", bare), full.slice(bare.length)];
}

async function end(page, jid, changed) {
  if (!(await confirm("End this session?", `${jid} is disconnected. It may log in again.`, "End session"))) return;
  await page.attempt(async () => {
    const ended = await del(path("v1", "admin", "sessions", jid), here());
    page.say(ended.sessions_ended ? "The session is ended." : "The session had already ended.");
    changed();
  });
}
