// The node's figures now, and over the last ten minutes as the node has kept them.

import { node } from "./api.js";
import { Chart, SPAN_MS } from "./chart.js";
import { badge, empty, facts, h } from "./dom.js";
import { drain } from "./drain.js";
import { bytes, clock, count, duration, measure } from "./format.js";
import { card } from "./page.js";

const MIB = 1 << 20;
const TILES = [
  ["connections", "Connections", (s) => [count(s.connections)]],
  ["sessions", "Sessions", (s) => [count(s.sessions)]],
  ["logins", "Logins", (s) => [measure(s.logins_per_second), "/s"]],
  ["deliveries", "Deliveries", (s) => [measure(s.deliveries_per_second), "/s"]],
  ["p50", "Delivery p50", (s) => [measure(s.delivery_p50_ms), "ms"]],
  ["p99", "Delivery p99", (s) => [measure(s.delivery_p99_ms), "ms"]],
  ["memory", "Memory", (s) => bytes(s.resident_bytes)],
  ["uptime", "Uptime", (s) => [duration(s.uptime_ms)]],
];

const FACTS = [
  ["Connections accepted", (s) => count(s.accepted)],
  ["Connections refused", (s) => count(s.refused)],
  ["TLS handshakes", (s) => count(s.handshakes)],
  ["Successful logins", (s) => count(s.logins)],
  ["Failed logins", (s) => count(s.login_failures)],
  ["Stanzas received", (s) => count(s.stanzas_in)],
  ["Stanzas sent", (s) => count(s.stanzas_out)],
  ["Bytes received", (s) => bytes(s.bytes_in).join(" ")],
  ["Bytes sent", (s) => bytes(s.bytes_out).join(" ")],
  ["Deliveries", (s) => count(s.deliveries)],
  ["Notifications accepted", (s) => count(s.notifications_accepted)],
  ["Notifications acknowledged", (s) => count(s.notifications_acknowledged)],
  ["Notifications not delivered", (s) => count(s.notifications_ended)],
  ["Items published", (s) => count(s.published)],
  ["Slow readers disconnected", (s) => count(s.overflows)],
  ["Store commits", (s) => count(s.store.commits)],
  ["Writes per commit", (s) => (s.store.commits ? measure(s.store.writes / s.store.commits) : "–")],
];

const NOW = [
  ["Sessions with available presence", (s) => count(s.available)],
  // Of a few sessions it would say what the program takes, not what a session does.
  ["Memory per session", (s) => (s.sessions >= 1000 ? bytes(s.resident_bytes / s.sessions).join(" ") : "–")],
  ["Requests waiting for the store", (s) => count(s.store.waiting)],
  ["Size of the store", (s) => bytes(s.store.bytes).join(" ")],
  ["Shards", (s) => count(s.shards)],
];

export function overview(page) {
  const tiles = h("dl", { class: "tiles" });
  const [now, totals, errors] = [h("div", {}), h("div", {}), h("div", {})];
  const state = h("span", { "data-testid": "node-state" });
  const lead = h("p", { class: "muted", "data-testid": "node-lead" }, "Loading…");
  const past = history(page);
  const element = h("div", {},
    h("div", { class: "page-head" }, h("div", { class: "page-title" }, h("div", { class: "row" }, h("h1", {}, "Overview"), state), lead)),
    tiles, past.element,
    h("div", { class: "grid two below" },
      card("Since the node started", totals), h("div", { class: "stack" }, card("Now", now), card("Stream errors sent", errors), drain(page))));
  /** The last figures, and when they came. */
  let last = null;

  const show = (s) => {
    tiles.replaceChildren(...TILES.map(([id, name, read]) => {
      const [value, unit] = read(s);
      return h("div", { class: "tile" }, h("dt", {}, name), h("dd", { id: `stat-${id}`, "data-testid": `stat-${id}` }, value, unit ? h("span", { class: "unit" }, unit) : null));
    }));
    now.replaceChildren(facts(NOW.map(([name, read]) => [name, read(s)])));
    totals.replaceChildren(facts(FACTS.map(([name, read]) => [name, read(s)])));
    const rows = Object.entries(s.stream_errors).sort((a, b) => b[1] - a[1]);
    errors.replaceChildren(rows.length ? facts(rows.map(([name, n]) => [name, count(n)])) : empty("None", "No stream was ended with an error."));
  };

  /** Says what is so now: of a node that does not answer nothing is known but how old its figures are. */
  const tell = () => {
    const [word, kind] = node.lost ? ["Unreachable", "bad"] : !last ? ["", ""] : last.ready ? ["Taking sessions", "good"] : ["Not taking sessions", "warn"];
    state.replaceChildren(word ? badge(word, kind) : "");
    element.classList.toggle("stale", Boolean(node.lost));
    if (!last) lead.textContent = node.lost ? "No figures yet." : "Loading…";
    else if (node.lost) lead.textContent = `These figures are from ${clock(last.came)}, ${duration(Date.now() - last.came)} ago.`;
    else lead.textContent = `Carillon ${last.version}`;
  };

  const tick = async () => {
    try {
      const status = await page.get("/v1/admin/status");
      last = { came: Date.now(), version: status.version, ready: status.ready };
      show(status);
    } catch (problem) {
      if (!node.lost) lead.textContent = problem.message;
      else tell();
      return;
    }
    tell();
  };
  node.addEventListener("change", tell, { signal: page.signal });
  page.repeat(1000, tick);
  return element;
}

/** The charts, which go on from what the node has kept. */
function history(page) {
  let samples = [];
  let interval = 2000;
  let came = 0;
  const point = (time) => charts.forEach((chart) => chart.point(time));
  const chart = (id, title, series, format, isWhole) => new Chart(id, title, series, format, point, isWhole);
  const per = (v) => `${measure(v)}/s`;
  const charts = [
    chart("sessions", "Connections and sessions", [["Connections", (s) => s.connections], ["Sessions", (s) => s.sessions]], count, true),
    chart("deliveries", "Deliveries", [["Delivered", (s) => s.deliveries_per_second], ["Acknowledged", (s) => s.acknowledgements_per_second]], per),
    chart("latency", "Time to delivery", [["p50", (s) => s.delivery_p50_ms], ["p99", (s) => s.delivery_p99_ms]], (v) => `${measure(v)} ms`),
    chart("logins", "Logins", [["Successful", (s) => s.logins_per_second], ["Failed", (s) => s.login_failures_per_second]], per),
    chart("errors", "Errors sent to clients", [["Errors", (s) => s.errors_per_second]], per),
    chart("cpu", "CPU", [["Cores in use", (s) => s.cpu]], (v) => (v > 0 && v < 0.1 ? v.toFixed(3) : measure(v))),
    chart("memory", "Memory", [["Resident", (s) => s.resident_bytes / MIB]], (v) => bytes(v * MIB).join(" ")),
  ];
  const draw = () => {
    if (samples.length === 0) return;
    // Time goes on while the node says nothing.
    const now = samples.at(-1).t + (node.lost ? Date.now() - came : 0);
    samples = samples.filter((s) => s.t > now - SPAN_MS - interval);
    charts.forEach((c) => c.draw(samples, now, 3 * interval));
  };
  page.repeat(2000, async () => {
    try {
      const answer = await page.get("/v1/admin/history", { after: samples.at(-1)?.at });
      interval = answer.interval_ms;
      const seen = new Set(samples.map((s) => s.at));
      samples.push(...answer.samples.filter((s) => !seen.has(s.at)).map((s) => ({ ...s, t: Date.parse(s.at) })));
      if (answer.samples.length) came = Date.now();
    } catch {
      // The page says so already.
    }
    draw();
  });
  return { element: h("div", { class: "grid two" }, charts.map((c) => c.element)) };
}
