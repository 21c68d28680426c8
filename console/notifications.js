// Notifications: listed by account and state, newest first, and found by id.

import { here, session } from "./api.js";
import { address, h, input, link, select } from "./dom.js";
import { exact, moment } from "./format.js";
import { card, heading, listing, row, table } from "./page.js";
import { STATES, pill } from "./path.js";

const COLUMNS = ["Accepted", "State", "To", "Notification", "Priority", "Expires"];
const ON_THE_WAY = "scheduled,accepted,stored,sent";
const ID = /^[0-9A-HJKMNP-TV-Z]{26}$/i;
const WAITING_MAX = 20;

export function notifications(page) {
  const to = input("notifications-to", { type: "search", placeholder: "Account or id", "aria-label": "Only those to this account, or the id of one" });
  const state = select("notifications-state", [["", "All states"], [ON_THE_WAY, "On the way"], ...Object.entries(STATES).map(([word, [name]]) => [word, name])], "");
  state.setAttribute("aria-label", "Only those in this state");
  const all = listing(page, {
    id: "notifications", columns: COLUMNS, line,
    read: (after) => ["/v1/notifications", here({ to: to.value.trim() || undefined, state: state.value, limit: 50, cursor: after })],
    none: ["No notifications", "None found. The trace of a notification that ended is kept for a limited time."],
  });
  const find = (event) => {
    event.preventDefault();
    const text = to.value.trim();
    if (ID.test(text)) location.hash = address("notifications", text.toUpperCase());
    else all.reload();
  };
  state.addEventListener("change", () => all.reload());
  return h("div", {},
    heading("Notifications", `What was sent to accounts of ${session.domain}, newest first.`,
      h("form", { class: "row search", role: "search", onsubmit: find }, state, to, h("button", { class: "button", type: "submit" }, "Find"))),
    all.element);
}

/** Shows what is on its way to an account. */
export async function waiting(page, where, jid, query) {
  const answer = await page.attempt(() => page.get("/v1/notifications", { ...query, to: jid, state: ON_THE_WAY, limit: WAITING_MAX }));
  if (!answer) return;
  const list = answer.notifications;
  where.replaceChildren(list.length ? card(answer.next ? `Notifications on the way (the newest ${WAITING_MAX})` : "Notifications on the way", table("waiting", COLUMNS, list.map(line))) : "");
}

function line(n) {
  return row(COLUMNS, { "data-notification": n.id }, ["when", exact(n.accepted_at)], pill(n.state), ["jid", link(n.to, "devices", n.to)],
    ["mono", link(n.id, "notifications", n.id)], n.priority, ["when", n.expires_at ? moment(n.expires_at) : "–"]);
}
