// One notification: its path, everything known of it, and cancelling it.

import { follow, path } from "./api.js";
import { facts, h, link } from "./dom.js";
import { exact, moment } from "./format.js";
import { card, failure, heading } from "./page.js";
import { ended, merge, steps, title } from "./path.js";

const TIMES = [
  ["Accepted", "accepted_at"], ["Scheduled for", "send_at"], ["Stored", "stored_at"], ["Sent", "sent_at"], ["Acknowledged", "acknowledged_at"],
  ["Ended", "ended_at"], ["Expires", "expires_at"],
];

export function notification(page) {
  const [id] = page.params;
  const body = h("div", {});
  let known = null;

  function learn(news) {
    known = merge(known, news);
    const n = known;
    const times = TIMES.filter(([, member]) => n[member] && !(member === "ended_at" && n.state === "acknowledged"))
      .map(([name, member]) => [name, h("time", { datetime: n[member], title: moment(n[member]), "data-time": member }, exact(n[member]))]);
    body.replaceChildren(h("div", { class: "grid side" },
      h("section", { class: "card" }, h("h2", {}, "Path"), title(page, n, learn, false),
        h("ol", { id: "path", class: "path", "data-testid": "path", "data-state": n.state, "aria-live": "polite" }, steps(n))),
      card("Details", facts([
        ["To", link(n.to, "devices", n.to)],
        ["Audience", n.audience],
        ["Priority", n.priority],
        ["Collapse key", n.collapse_key ? h("span", { class: "mono" }, n.collapse_key) : "None"],
        ...times,
      ]))));
  }

  async function read() {
    try {
      learn(await page.get(path("v1", "notifications", id)));
    } catch (problem) {
      if (!known) body.replaceChildren(h("section", { class: "card" }, failure(problem, read)));
    }
  }

  page.load(read);
  follow({}, {
    signal: page.signal,
    event: (kind, data) => { if (kind !== "notification") read(); else if (data.id === id.toUpperCase()) learn(data); },
    // What happened before the stream was open is asked for.
    opened: (open) => { if (open && known && !ended(known)) read(); },
  });
  return h("div", {}, heading("Notification", h("span", { class: "mono break" }, id)), body);
}
