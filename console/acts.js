// Administrative acts: who did what, and what became of it.

import { session } from "./api.js";
import { badge, button, field, h, input, select } from "./dom.js";
import { exact } from "./format.js";
import { heading, listing, row } from "./page.js";

const COLUMNS = ["Time", "Key", "What", "Outcome"];
const OUTCOMES = [["", "Any outcome"], ["done", "Done"], ["refused", "Refused"], ["failed", "Failed"]];
const ANYBODY = "";
/** Acts that are shown at once. */
const PAGE = 50;

export function acts(page) {
  const who = select("acts-key", [[ANYBODY, "Any key"]], ANYBODY);
  const outcome = select("acts-outcome", OUTCOMES, "");
  const what = input("acts-what", { type: "search", maxlength: 256, placeholder: "/v1/admin/keys" });
  const all = listing(page, {
    id: "acts", columns: COLUMNS,
    read: (after) => ["/v1/admin/audit", { limit: PAGE, after, key: who.value, outcome: outcome.value, what: what.value.trim() }],
    line: (act) => row(COLUMNS, { "data-act": act.id },
      ["when", exact(act.at), `Request ${act.request_id}`],
      ["jid", [button(act.key, "quiet", () => only(act), { title: `Only acts by key ${act.key_id}` }), h("div", { class: "muted small" }, [`Number ${act.key_id}`, act.domain, act.address].filter(Boolean).join(", "))]],
      ["mono", [act.what, act.reason && h("div", { class: "muted small" }, act.reason)]],
      result(act.outcome)),
    none: ["No such acts", "What is done with keys of scope admin, or refused to others, is listed here."],
  });

  /** Shows what one key did, which may be gone. */
  function only({ key, key_id }) {
    offer(key_id, key);
    who.value = String(key_id);
    all.reload();
  }

  function offer(id, name) {
    if (![...who.options].some((option) => option.value === String(id))) who.append(h("option", { value: String(id) }, `${name} (${id})`));
  }

  for (const control of [who, outcome]) control.addEventListener("change", () => all.reload());
  page.attempt(async () => {
    const { keys } = await page.get("/v1/admin/keys");
    for (const { id, name } of keys) offer(id, name);
  });
  const search = h("form", { class: "filters", role: "search", onsubmit: (event) => { event.preventDefault(); all.reload(); } },
    field("Key", who), field("Outcome", outcome), field("Has in it", what), h("button", { class: "button", type: "submit", "data-testid": "acts-search" }, "Search"));
  const lead = session.own.domain ? "What was done, or refused, with the keys of this domain." : "What administrators did, or were refused, with which key.";
  return h("div", {}, heading("Acts", lead), h("section", { class: "card" }, search), all.element);
}

/** What became of an act: a status with the code of a problem, or the word of a command. */
function result(outcome) {
  const kind = /^5|^failed/.test(outcome) ? "bad" : /^4|^refused/.test(outcome) ? "warn" : "good";
  return badge(outcome, kind);
}
