// Live numbers of the node.

import { get } from "./api.js";
import { Chart } from "./chart.js";
import { bytes, count, duration, empty, h, measure } from "./dom.js";

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
  ["Logins", (s) => count(s.logins)],
  ["Login failures", (s) => count(s.login_failures)],
  ["Available sessions", (s) => count(s.available)],
  // Of a few sessions it would say what the program takes, not what a session does.
  ["Memory a session", (s) => (s.sessions >= 1000 ? bytes(s.resident_bytes / s.sessions).join(" ") : "–")],
  ["Stanzas in", (s) => count(s.stanzas_in)],
  ["Stanzas out", (s) => count(s.stanzas_out)],
  ["Received", (s) => bytes(s.bytes_in).join(" ")],
  ["Sent", (s) => bytes(s.bytes_out).join(" ")],
  ["Deliveries", (s) => count(s.deliveries)],
  ["Notifications accepted", (s) => count(s.notifications_accepted)],
  ["Notifications acknowledged", (s) => count(s.notifications_acknowledged)],
  ["Notifications ended otherwise", (s) => count(s.notifications_ended)],
  ["Items published", (s) => count(s.published)],
  ["Slow readers disconnected", (s) => count(s.overflows)],
  ["Store commits", (s) => count(s.store.commits)],
  ["Writes a commit", (s) => (s.store.commits ? measure(s.store.writes / s.store.commits) : "–")],
  ["Store waiting", (s) => count(s.store.waiting)],
  ["Store size", (s) => bytes(s.store.bytes).join(" ")],
  ["Shards", (s) => count(s.shards)],
];

export function overview({ onLive, signal }) {
  const tiles = TILES.map(([id, name]) => [h("dd", { id: `stat-${id}`, "data-testid": `stat-${id}` }, "–"), name]);
  const charts = {
    sessions: new Chart("Connections and sessions", ["Connections", "Sessions"], (v) => (v % 1 ? v.toFixed(1) : count(v))),
    deliveries: new Chart("Deliveries", ["a second"], measure),
    logins: new Chart("Logins", ["a second"], measure),
    latency: new Chart("Time to delivery", ["p50", "p99"], (v) => `${measure(v)} ms`),
  };
  const version = h("span", {});
  const facts = FACTS.map(([name]) => [h("dd", {}, "–"), name]);
  const errors = h("div", {});
  const page = h("div", {},
    h("div", { class: "page-head" }, h("div", {}, h("h1", {}, "Overview"), h("p", { class: "muted" }, version))),
    h("dl", { class: "tiles" }, tiles.map(([dd, name]) => h("div", { class: "tile" }, h("dt", {}, name), dd))),
    h("div", { class: "grid two" }, Object.values(charts).map((c) => c.element)),
    h("div", { class: "grid two below" },
      h("section", { class: "card" }, h("h2", {}, "Since the start"),
        h("dl", { class: "facts" }, facts.map(([dd, name]) => h("div", {}, h("dt", {}, name), dd)))),
      h("section", { class: "card" }, h("h2", {}, "Stream errors sent"), errors)));

  const show = (s) => {
    version.textContent = `Version ${s.version}, ${s.ready ? "taking sessions" : "not taking sessions"}.`;
    TILES.forEach(([, , read], i) => {
      const [value, unit] = read(s);
      tiles[i][0].replaceChildren(value, unit ? h("span", { class: "unit" }, unit) : "");
    });
    FACTS.forEach(([, read], i) => { facts[i][0].textContent = read(s); });
    charts.sessions.push(s.connections, s.sessions);
    charts.deliveries.push(s.deliveries_per_second);
    charts.logins.push(s.logins_per_second);
    charts.latency.push(s.delivery_p50_ms, s.delivery_p99_ms);
    const rows = Object.entries(s.stream_errors).sort((a, b) => b[1] - a[1]);
    errors.replaceChildren(rows.length
      ? h("dl", { class: "facts" }, rows.map(([name, n]) => h("div", {}, h("dt", {}, name), h("dd", {}, count(n)))))
      : empty("None", "No stream had to be ended with an error."));
  };
  const tick = async () => {
    // The page was left, and perhaps the key with it, while this waited.
    if (signal.aborted) return;
    try {
      show(await get("/v1/admin/status"));
      onLive(true);
    } catch (problem) {
      if (signal.aborted) return;
      if (problem.status === 403) {
        page.replaceChildren(h("h1", {}, "Overview"), h("div", { class: "card below" }, empty("Not for this key", "The node's figures need a key of the whole node with scope admin.")));
        return;
      }
      Object.values(charts).forEach((c) => c.push(...c.values.map(() => null)));
      onLive(false);
    }
    setTimeout(tick, 1000);
  };
  tick();
  return page;
}
