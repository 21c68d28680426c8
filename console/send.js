// A notification, and its path to the device as it happens.

import { del, follow, get, here, path, post, session } from "./api.js";
import { badge, clock, empty, field, h, select, toast } from "./dom.js";

const STEPS = [
  ["accepted", "Accepted", "The node has it"],
  ["stored", "Stored", "On disk, safe from a crash"],
  ["sent", "Sent", "A connection of the device took it"],
  ["acknowledged", "Acknowledged", "The device has it"],
];
const LAST = ["acknowledged", "expired", "replaced", "cancelled", "dropped"];
const KINDS = { acknowledged: "good", sent: "accent", stored: "accent", expired: "warn", replaced: "warn", cancelled: "warn", dropped: "bad" };
const BY = { "stream-management": "by the client's stream management", receipt: "by the client's receipt", socket: "by the socket; the client confirms nothing" };
const RECENT_MAX = 12;

export function send({ signal }) {
  /** What is known of notifications: by id, newest last. */
  const known = new Map();
  const mine = [];
  let chosen = null;

  const to = h("input", { id: "send-to", "data-testid": "send-to", required: true, placeholder: "alice, bob@example.org", autocomplete: "off", autocapitalize: "none", spellcheck: "false" });
  const payload = h("textarea", { id: "send-payload", "data-testid": "send-payload", required: true, spellcheck: "false", "aria-describedby": "send-error" });
  payload.value = '{ "title": "Hello", "body": "Your match is ready." }';
  const audience = select("send-audience", [["always", "Always: kept until it returns"], ["connected", "Connected, also asleep"], ["active", "Active: in use now"]], "always");
  const priority = select("send-priority", [["high", "High"], ["normal", "Normal"], ["low", "Low"]], "normal");
  const ttl = h("input", { id: "send-ttl", type: "number", min: 1, max: 2592000, placeholder: "seconds", inputmode: "numeric" });
  const collapse = h("input", { id: "send-collapse", maxlength: 64, placeholder: "none", autocomplete: "off" });
  const dry = h("input", { id: "send-dry-run", type: "checkbox" });
  const error = h("p", { id: "send-error", class: "error-text", role: "alert" });
  const submit = h("button", { id: "send-submit", class: "button primary", "data-testid": "send-submit", type: "submit" }, "Send");
  const trail = h("ol", { id: "path", class: "path", "data-testid": "path", "aria-live": "polite" });
  const head = h("div", {});
  const recent = h("div", {});

  const form = h("form", { id: "send-form", class: "card form", onsubmit },
    h("h2", {}, "New notification"),
    field("To", to, "Devices by id or JID, with commas between them."),
    field("Payload", payload, "Any JSON, or one XML element in a namespace of its own."),
    field("Audience", audience),
    h("div", { class: "fields" }, field("Priority", priority), field("Time to live", ttl), field("Collapse key", collapse)),
    error,
    h("div", { class: "row between" }, h("label", { class: "check", for: "send-dry-run" }, dry, "Only check, send nothing"), submit));

  async function onsubmit(event) {
    event.preventDefault();
    error.textContent = "";
    submit.disabled = true;
    try {
      show(await post("/v1/notifications", body(), here()));
    } catch (problem) {
      error.textContent = problem.message;
      to.setAttribute("aria-invalid", String(problem.pointer?.startsWith("/to") ?? problem.code === "unknown-device"));
      payload.setAttribute("aria-invalid", String(problem.pointer?.startsWith("/payload") ?? false));
    } finally {
      submit.disabled = false;
    }
  }

  function body() {
    const targets = to.value.split(/[\s,]+/).filter(Boolean);
    const text = payload.value.trim();
    const body = { to: targets.length === 1 ? targets[0] : targets, audience: audience.value, priority: priority.value };
    if (ttl.value) body.ttl = Number(ttl.value);
    if (collapse.value) body.collapse_key = collapse.value;
    if (dry.checked) body.dry_run = true;
    if (text.startsWith("<")) return { ...body, payload_xml: text };
    try {
      return { ...body, payload: JSON.parse(text) };
    } catch {
      throw Object.assign(new Error("The payload is neither JSON nor an XML element."), { pointer: "/payload" });
    }
  }

  function show(response) {
    to.removeAttribute("aria-invalid");
    payload.removeAttribute("aria-invalid");
    for (const result of response.results) {
      if (result.code) toast(`${result.to}: ${result.detail}`, "bad");
    }
    if (response.dry_run) {
      const fine = response.results.filter((r) => !r.code).length;
      toast(`Checked: ${fine} of ${response.results.length} would be sent.`);
      return;
    }
    for (const { id, to: target, state, reason } of response.results.filter((r) => r.id)) {
      mine.push(id);
      if (!known.has(id)) known.set(id, { id, to: target, state, reason });
      refresh(id);
    }
    if (mine.length > RECENT_MAX) mine.splice(0, mine.length - RECENT_MAX);
    chosen = mine.at(-1) ?? chosen;
    draw();
  }

  /** Reads a notification again: for what happened before the stream told of it. */
  async function refresh(id) {
    try {
      learn(await get(path("v1", "notifications", id)));
    } catch (problem) {
      if (problem.code !== "unknown-notification") toast(problem.message, "bad");
    }
  }

  /** Takes news of a notification, unless it is older than what is known. */
  function learn(news) {
    const before = known.get(news.id);
    if (before && LAST.includes(before.state) && !LAST.includes(news.state)) return;
    known.set(news.id, { ...before, ...news });
    if (known.size > 2000) known.delete(known.keys().next().value);
    if (mine.includes(news.id)) draw();
  }

  async function cancel(id) {
    try {
      learn(await del(path("v1", "notifications", id)));
      toast("Cancelled.");
    } catch (problem) {
      toast(problem.message, "bad");
      refresh(id);
    }
  }

  function draw() {
    const n = known.get(chosen);
    trail.dataset.state = n?.state ?? "";
    trail.dataset.id = n?.id ?? "";
    head.replaceChildren(n ? heading(n, cancel) : empty("Nothing sent yet", "Send a notification and follow it here, step by step."));
    trail.replaceChildren(...(n ? steps(n) : []));
    recent.replaceChildren(mine.length > 1 ? recents() : "");
  }

  function recents() {
    const rows = [...mine].reverse().map((id) => known.get(id)).map((n) => h("tr", { "aria-selected": String(n.id === chosen) },
      h("td", {}, h("button", { class: "link", type: "button", onclick: () => { chosen = n.id; draw(); } }, n.to)),
      h("td", { class: "num muted" }, n.accepted_at ? clock(n.accepted_at) : ""),
      h("td", { class: "right" }, badge(n.state, KINDS[n.state]))));
    return h("section", { class: "card" }, h("h2", {}, "Sent from here"), h("div", { class: "table-wrap" }, h("table", {}, h("tbody", {}, rows))));
  }

  const live = h("span", { class: "badge", "data-testid": "live" }, "connecting");
  follow(session.own.domain ? {} : here(), {
    signal,
    event: (kind, data) => (kind === "notification" ? learn(data) : mine.filter((id) => !LAST.includes(known.get(id).state)).forEach(refresh)),
    opened: (open) => {
      live.textContent = open ? "live" : "reconnecting";
      live.className = `badge ${open ? "good" : "warn"}`;
      // What happened while the stream was closed is asked for.
      if (open) mine.filter((id) => !LAST.includes(known.get(id).state)).forEach(refresh);
    },
  });
  draw();
  return h("div", {},
    h("div", { class: "page-head" }, h("div", {}, h("h1", {}, "Send"), h("p", { class: "muted" }, "Send a notification and watch it arrive.")), live),
    h("div", { class: "grid side" }, form, h("div", { class: "stack" }, h("section", { class: "card" }, h("h2", {}, "Path"), head, trail), recent)));
}

function heading(n, cancel) {
  const open = ["scheduled", "accepted", "stored"].includes(n.state);
  return h("div", { class: "row between path-head" },
    h("div", {}, h("div", {}, n.to, " ", badge(n.state, KINDS[n.state])), h("div", { class: "mono muted" }, n.id)),
    open && h("button", { class: "button quiet danger", type: "button", onclick: () => cancel(n.id) }, "Take back"));
}

function steps(n) {
  const begun = n.accepted_at ? Date.parse(n.accepted_at) : null;
  const times = { accepted: n.accepted_at, stored: n.stored_at, sent: n.sent_at, acknowledged: n.acknowledged_at };
  const reached = (name) => Boolean(times[name]) || n.state === name;
  const ended = LAST.includes(n.state) && n.state !== "acknowledged";
  const shown = ended ? STEPS.filter(([name]) => reached(name)) : STEPS;
  const rows = shown.map(([name, title, text]) => {
    const why = name === "acknowledged" && n.acknowledged_by ? `Confirmed ${BY[n.acknowledged_by]}` : text;
    return step(name, title, why, times[name], begun, reached(name) ? name : null);
  });
  if (!ended) {
    const next = rows.findLastIndex((row) => row.dataset.state) + 1;
    rows[next]?.classList.add("waiting");
    return rows;
  }
  const last = step(n.state, n.state[0].toUpperCase() + n.state.slice(1), n.reason?.replaceAll("-", " "), n.ended_at, begun, n.state);
  last.classList.add("ended");
  return [...rows, last];
}

function step(name, title, why, at, begun, state) {
  const after = at && begun !== null && name !== "accepted" ? `+${Math.max(0, Date.parse(at) - begun)} ms` : "";
  return h("li", { "data-step": name, "data-state": state },
    h("div", { class: "step" }, title, why && h("span", { class: "why" }, why)),
    h("div", { class: "when" }, at ? (after || clock(at)) : "", at && after ? h("small", {}, clock(at)) : null));
}
