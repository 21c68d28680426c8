// What becomes of notifications, as it happens.

import { follow, here, session } from "./api.js";
import { badge, button, empty, field, h, input, link } from "./dom.js";
import { count, many, precise } from "./format.js";
import { heading, row, table } from "./page.js";
import { STATES, pill } from "./path.js";

const COLUMNS = ["Time", "State", "To", "Notification", "Priority"];
/** Rows that are shown, and as many that wait while the page is paused. */
const ROWS_MAX = 200;
/** How often the page is drawn at most. */
const FRAME_MS = 200;
const WHEN = { scheduled: "accepted_at", accepted: "accepted_at", stored: "stored_at", sent: "sent_at" };

export function events(page) {
  const seen = [];
  let held = [];
  let paused = false;
  let missed = 0;
  let drawing = null;
  const states = new Set();
  const text = input("events-text", { type: "search", placeholder: "alice", oninput: () => draw() });
  const live = h("span", { class: "badge", "data-testid": "live" }, "Connecting");
  const where = h("div", { id: "events" });
  const note = h("span", { class: "muted small", "data-testid": "events-note", role: "status" });
  const pause = button("Pause", "", () => hold(!paused), { id: "events-pause", "data-testid": "events-pause", "aria-pressed": "false" });
  const clear = button("Clear", "quiet", () => { seen.length = 0; held = []; missed = 0; draw(); });
  const chips = Object.keys(STATES).map((state) => h("label", { class: "chip" },
    h("input", { type: "checkbox", value: state, "data-testid": `state-${state}`, onchange: (e) => { states[e.target.checked ? "add" : "delete"](state); draw(); } }), STATES[state][0]));

  function hold(on) {
    paused = on;
    pause.textContent = on ? "Resume" : "Pause";
    pause.setAttribute("aria-pressed", String(on));
    if (!on) { keep(seen, held); held = []; }
    draw();
  }

  function keep(list, more) {
    list.push(...more);
    if (list.length > ROWS_MAX) list.splice(0, list.length - ROWS_MAX);
  }

  function wanted(n) {
    const word = text.value.trim().toLowerCase();
    return (states.size === 0 || states.has(n.state)) && (!word || n.to.toLowerCase().includes(word) || n.id.toLowerCase().includes(word));
  }

  function line(n) {
    return row(COLUMNS, { "data-event": n.id, "data-state": n.state },
      ["when", precise(n[WHEN[n.state]] ?? n.ended_at ?? n.accepted_at)], pill(n.state), ["jid", link(n.to, "devices", n.to)], ["mono", link(n.id, "notifications", n.id)], n.priority);
  }

  function draw() {
    clearTimeout(drawing);
    drawing = null;
    const shown = seen.filter(wanted).reverse();
    const filtered = seen.length > shown.length;
    where.replaceChildren(shown.length ? table("events", COLUMNS, shown.map(line))
      : filtered ? empty("No event matches", "Change the filter to see others.") : empty("No events yet", "What happens to notifications from now on appears here."));
    note.textContent = [
      filtered ? `${many(shown.length, "event")} of ${count(seen.length)}` : many(seen.length, "event"), `the last ${ROWS_MAX} are kept`,
      paused && `paused: ${count(held.length)}${held.length === ROWS_MAX ? " or more" : ""} waiting`, missed && `${count(missed)} missed: they came too fast`,
    ].filter(Boolean).join(" · ");
  }

  follow(session.own.domain ? {} : here(), {
    signal: page.signal,
    event: (kind, data) => {
      if (kind === "lagged") missed += data.count;
      else if (kind === "gap") missed += Math.max(0, data.next - data.after - 1);
      else if (kind === "notification") keep(paused ? held : seen, [data]);
      drawing ??= setTimeout(draw, FRAME_MS);
    },
    opened: (open) => {
      live.className = badge("", open ? "good" : "warn").className;
      live.textContent = open ? "Live" : "Reconnecting";
    },
  });
  page.signal.addEventListener("abort", () => clearTimeout(drawing));
  draw();
  return h("div", {},
    heading("Events", "What happens to notifications, as it happens.", live, clear, pause),
    h("section", { class: "card" },
      h("div", { class: "filters" }, field("Device or notification", text), h("fieldset", { class: "chips" }, h("legend", { class: "label" }, "States (all if none is chosen)"), chips)),
      where, h("div", { class: "card-foot" }, note)));
}
