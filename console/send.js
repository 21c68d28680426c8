// A notification, and its path to the device as it happens.

import { follow, here, path, session } from "./api.js";
import { badge, empty, h } from "./dom.js";
import { precise } from "./format.js";
import { compose } from "./compose.js";
import { card, heading, row, table } from "./page.js";
import { ended, merge, pill, steps, title } from "./path.js";

const SENT_MAX = 12;
const COLUMNS = ["To", "Sent at", "State"];

export function send(page) {
  /** What is known of the notifications sent from here: by id, newest last. */
  const mine = new Map();
  let chosen = null;
  const trail = h("ol", { id: "path", class: "path", "data-testid": "path", "aria-live": "polite" });
  const head = h("div", {});
  const recent = h("div", {});

  function sent(results) {
    for (const result of results) {
      mine.set(result.id, merge(mine.get(result.id), result));
      chosen = result.id;
      refresh(result.id);
    }
    for (const id of [...mine.keys()].slice(0, -SENT_MAX)) mine.delete(id);
    draw();
  }

  /** Reads a notification again: for what happened before the stream told of it. */
  async function refresh(id) {
    try {
      learn(await page.get(path("v1", "notifications", id)));
    } catch (problem) {
      if (!["unknown-notification", "unreachable"].includes(problem.code)) page.say(problem.message, "bad");
    }
  }

  const refreshOpen = () => [...mine.values()].filter((n) => !ended(n)).forEach((n) => refresh(n.id));

  function learn(news) {
    if (!mine.has(news.id)) return;
    mine.set(news.id, merge(mine.get(news.id), news));
    draw();
  }

  function draw() {
    const n = mine.get(chosen);
    trail.dataset.state = n?.state ?? "";
    trail.dataset.id = n?.id ?? "";
    head.replaceChildren(n ? title(page, n, learn) : empty("Nothing sent yet", "Send a notification and follow it here, step by step."));
    trail.replaceChildren(...(n ? steps(n) : []));
    recent.replaceChildren(mine.size > 1 ? card("Sent from this page", table("recent", COLUMNS, [...mine.values()].reverse().map(line))) : "");
  }

  function line(n) {
    const show = () => { chosen = n.id; draw(); };
    return row(COLUMNS, { "aria-current": n.id === chosen ? "true" : null },
      h("button", { class: "link", type: "button", onclick: show }, n.to), ["when", n.accepted_at ? precise(n.accepted_at) : ""], pill(n.state));
  }

  const live = h("span", { class: "badge", "data-testid": "live" }, "Connecting");
  follow(session.own.domain ? {} : here(), {
    signal: page.signal,
    event: (kind, data) => (kind === "notification" ? learn(data) : refreshOpen()),
    opened: (open) => {
      live.replaceWith(Object.assign(live, { className: badge("", open ? "good" : "warn").className, textContent: open ? "Live" : "Reconnecting" }));
      // What happened while the stream was closed is asked for.
      if (open) refreshOpen();
    },
  });
  draw();
  return h("div", {},
    heading("Send", "Send a notification and watch it arrive.", live),
    h("div", { class: "grid side" }, compose(page, { title: "New notification", sent }),
      h("div", { class: "stack" }, h("section", { class: "card" }, h("h2", {}, "Path"), head, trail), recent)));
}
