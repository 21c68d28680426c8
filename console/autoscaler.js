// Autoscalers: what each that holds a lease of this node decided last, and why.

import { badge, empty, h } from "./dom.js";
import { clock, exact, measure } from "./format.js";
import { card, failure, heading, row, table } from "./page.js";

const RECENT = ["Decided", "Decision", "Units", "Demand", "Reason"];
const COLUMNS = ["Lease", "Decision", "Units", "Demand", "Why", "Decided", "Held until"];
const KINDS = { up: "good", down: "warn" };
const LEAD = "An autoscaler runs beside a cluster and takes a lease from a node (carillon autoscale run). Here is what each decided last, and before.";

export function autoscaler(page) {
  const list = h("div", {}, h("p", { class: "loading" }, "Loading…"));
  const before = h("div", { class: "stack" });

  async function load() {
    try {
      const { leases } = await page.get("/v1/admin/leases", { limit: 1000 });
      const none = () => empty("No autoscalers", "No program holds a lease of this node.");
      list.replaceChildren(leases.length ? table("scalers", COLUMNS, leases.map(line)) : none());
      before.replaceChildren(...leases.flatMap(recent));
    } catch (problem) {
      list.replaceChildren(failure(problem, load));
    }
  }

  page.repeat(2000, load);
  return h("div", {}, heading("Autoscaler", LEAD), h("div", { class: "stack" }, h("section", { class: "card" }, list), before));
}

/** A lease in a row. A program that is no autoscaler holds one, too, and says nothing that is shown here. */
function line(lease) {
  const said = lease.state ?? {};
  const refused = said.outcome?.refused;
  return row(COLUMNS, { "data-lease": lease.name },
    ["", [h("strong", {}, lease.name), h("div", { class: "muted small" }, lease.holder)]],
    ["", said.action ? [badge(said.action, KINDS[said.action] ?? ""), refused && h("div", { class: "error-text small" }, `refused: ${refused}`)] : "–"],
    ["num", units(said)],
    ["num", said.demand === undefined || said.demand === null ? "–" : [measure(said.demand), h("div", { class: "muted small" }, `target ${said.target} %`)]],
    ["", said.why ? [said.why, h("div", { class: "muted small" }, `policy ${said.policy}`), ...(said.notes ?? []).map((note) => h("div", { class: "muted small" }, note))] : "–"],
    ["", said.at ? clock(said.at) : "–", said.at && exact(said.at)],
    ["", clock(lease.until), exact(lease.until)]);
}

/** What a scaler decided before, the newest first: what changed something, and the first of those that gave one reason. */
function recent(lease) {
  const decisions = (lease.state?.recent ?? []).toReversed();
  if (!decisions.length) return [];
  const lines = decisions.map((said) => row(RECENT, {},
    ["", clock(said.at), exact(said.at)], ["", badge(said.action, KINDS[said.action] ?? "")], ["num", units(said)],
    ["num", said.demand === undefined || said.demand === null ? "–" : measure(said.demand)], ["", said.reason]));
  return [card(`Recent decisions of ${lease.name}`, table(`recent-${lease.name}`, RECENT, lines))];
}

/** How many there are, and are to be. */
function units({ granted, units: wanted }) {
  if (wanted === undefined || wanted === null) return granted ?? "–";
  return wanted === granted ? `${granted}` : `${granted ?? "?"} → ${wanted}`;
}
