// The nodes of the cell, as the one that is asked sees them; draining and burying them.

import { del, path, post, put, session } from "./api.js";
import { badge, button, confirm, facts, h, link } from "./dom.js";
import { bytes, count, duration, many } from "./format.js";
import { card, failure, row, table } from "./page.js";

const KINDS = { alive: "good", leaving: "warn", silent: "bad", dead: "" };
const COLUMNS = ["Node", "State", "Last beat", "Homes", "Connections", "Sessions", "Posted", "Taken", "Gaps", ""];
const DRAIN_MS = 60_000;

export function cluster(page) {
  const state = h("span", { "data-testid": "cluster-state" });
  const lead = h("p", { class: "muted", "data-testid": "cluster-lead" }, "Loading…");
  const [problems, nodes, own] = [h("div", {}), h("div", {}, h("p", { class: "loading" }, "Loading…")), h("div", {})];

  async function load() {
    try {
      const [cell, answer] = await Promise.all([page.get("/v1/cluster"), page.get("/v1/cluster/nodes")]);
      state.replaceChildren(cell.well ? badge("Well", "good") : badge("Not well", "bad"));
      lead.textContent = cell.alone ? "This node runs alone: it is in no cell." : `As ${cell.node} sees it. Updated every two seconds.`;
      problems.replaceChildren(...cell.problems.map((text) => h("p", { class: "error-text", "data-testid": "cluster-problem" }, text)));
      nodes.replaceChildren(table("nodes", COLUMNS, answer.nodes.map((node) => line(page, cell, node, load))));
      own.replaceChildren(facts(known(cell)));
    } catch (problem) {
      nodes.replaceChildren(failure(problem, load));
    }
  }

  page.repeat(2000, load);
  return h("div", {},
    h("div", { class: "page-head" }, h("div", { class: "page-title" }, h("div", { class: "row" }, h("h1", {}, "Cluster"), state), lead)),
    problems, h("section", { class: "card" }, nodes), h("div", { class: "grid two below" }, card("This node in the cell", own), where(page)));
}

/** A node in a row. */
function line(page, cell, node, changed) {
  const said = node.report, drain = said?.drain;
  const drained = drain?.state === "draining" ? `drains, ${count(drain.left)} left` : drain?.state === "drained" ? "drained" : null;
  return row(COLUMNS, { "data-node": node.node },
    ["", [h("strong", {}, node.node), node.own ? h("div", { class: "muted small" }, "asked") : null], `Process ${node.number}${said ? `, release ${said.version}` : ""}`],
    ["", [badge(node.state, KINDS[node.state]), drained && h("div", { class: "muted small" }, drained)]],
    ["num", node.state === "dead" || node.beat_age_ms === null ? "–" : `${(node.beat_age_ms / 1000).toFixed(1)} s ago`],
    ["num", h("div", {}, `${Math.round(node.homes * 100)} %`, h("progress", { max: 1, value: node.homes, "aria-label": `Homes on ${node.node}` })), `${node.partitions} of 256 partitions`],
    ["num", said ? [count(said.connections), far(said.relayed, "elsewhere at home")] : "–"],
    ["num", said ? [count(said.sessions), far(said.carried, "connected elsewhere")] : "–"],
    ["num", node.own ? "–" : traffic(node.posted, node.posted_bytes)], ["num", node.own ? "–" : traffic(node.taken, node.taken_bytes)],
    ["num", node.own ? "–" : count(node.gaps)],
    ["actions", actions(page, cell, node, changed)]);
}

const far = (n, what) => (n ? h("div", { class: "muted small" }, `${count(n)} ${what}`) : null);
const traffic = (n, size) => [count(n), h("div", { class: "muted small" }, bytes(size).join(" "))];

function actions(page, cell, node, changed) {
  if (node.state === "dead") return null;
  const at = (...more) => path("v1", "cluster", "nodes", node.node, ...more);
  const does = (act, said) => page.attempt(async () => { await act(); page.say(said); await changed(); });
  if (node.state === "silent") {
    return node.own ? null : button("Evict", "quiet danger", async () => {
      const yes = await confirm("Bury this node?", `Nothing that ${node.node} has under way is committed from then on, and its process ends. The others take its homes at once.`, "Bury it", node.node);
      if (yes) await does(() => post(at("evict"), { reason: `by the console, with the key ${session.own.name}` }), `${node.node} is buried.`);
    });
  }
  if (node.report && node.report.drain.state !== "none") {
    return button("Take sessions again", "quiet", () => does(() => del(at("drain")), `${node.node} takes sessions.`), { "data-testid": "node-undrain" });
  }
  return button("Drain", "quiet danger", async () => {
    const homes = cell.alone ? "" : "The other nodes take its homes at once. ";
    const yes = await confirm("Drain this node?", `${homes}${node.node} takes no new sessions, and its connections end.`, "Drain");
    if (yes) await does(() => put(at("drain"), { over_ms: DRAIN_MS }), `${node.node} is drained.`);
  }, { "data-testid": "node-drain" });
}

/** What the node that is asked knows of itself. */
function known(cell) {
  const bus = cell.bus;
  return [
    bus && ["Bus", bus.connected ? badge("connected", "good") : badge("away", "bad")],
    bus && ["Waits for the bus", bytes(bus.waiting_bytes).join(" ")],
    bus && ["Records lost for want of room", count(bus.dropped)],
    bus && ["Gaps in what others sent", count(bus.gaps)],
    ["Nodes read", `${duration(cell.read_age_ms)} ago`],
    ["Partitions that came", count(cell.homes_came)],
    ["Partitions that went", count(cell.homes_went)],
    ["Connections at home elsewhere", count(cell.relayed)],
    ["Sessions connected elsewhere", count(cell.carried)],
    ["Stanzas not settled elsewhere", `${count(cell.unsettled)}, ${bytes(cell.unsettled_bytes).join(" ")}`],
  ];
}

/** Which node is the home of an account, a topic or a room. */
function where(page) {
  const jid = h("input", { id: "where-jid", type: "search", required: true, placeholder: "alice@example.org", autocapitalize: "none", spellcheck: "false", "aria-label": "An account, TOPIC@pubsub.DOMAIN or ROOM@rooms.DOMAIN" });
  const found = h("div", { "data-testid": "where-found" });
  const find = async (event) => {
    event.preventDefault();
    try {
      const place = await page.get(path("v1", "cluster", "where", jid.value.trim()));
      found.replaceChildren(facts([["Home", place.home], ["Kind", place.kind], ["Partition", String(place.partition)]]),
        ...place.sessions.map((s) => h("p", { class: "small" }, link(s.jid, "sessions", s.jid.split("@")[0]), s.connection ? ` is connected to ${s.connection}` : " is parked")),
        place.kind === "account" && h("p", { class: "muted small" }, many(place.sessions.length, "session")) || "");
    } catch (problem) {
      found.replaceChildren(failure(problem));
    }
  };
  return card("Where is it?", h("form", { class: "row search", role: "search", onsubmit: find }, jid, h("button", { class: "button", type: "submit" }, "Find")), found);
}
