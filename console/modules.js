// Modules: filters in WebAssembly, what is activated of them, what they decide, and what they said.

import { del, path, post } from "./api.js";
import { badge, button, confirm, empty, h } from "./dom.js";
import { bytes, clock, count, exact } from "./format.js";
import { card, failure, heading, row, table } from "./page.js";

const COLUMNS = ["Module", "Decides", "For", "Standing", "Passed", "Dropped", "Rejected", "Replaced", "Failed", ""];
const KINDS = { active: "good", "rolled-back": "bad", off: "bad" };
const LEAD = "Filters in WebAssembly. They are pushed and activated by the command line: carillon module push, carillon module activate.";

export function modules(page) {
  const list = h("div", {}, h("p", { class: "loading" }, "Loading…"));
  const said = h("div", {});

  async function load() {
    try {
      const answer = await page.get("/v1/admin/modules");
      const rows = answer.modules.map((module) => line(page, module, load, show));
      list.replaceChildren(rows.length ? table("modules", COLUMNS, rows) : empty("No modules", "None was pushed to this node."));
    } catch (problem) {
      list.replaceChildren(failure(problem, load));
    }
  }

  async function show(name) {
    try {
      const [log, compared] = await Promise.all(["logs", "differences"].map((of) => page.get(path("v1", "admin", "modules", name, of))));
      said.replaceChildren(card(`What ${name} said`, lines("module-log", log.lines, "It said nothing on this node.")),
        compared.same + compared.different > 0 && card("In shadow", h("p", {}, `${count(compared.same)} calls the same, ${count(compared.different)} not`),
          lines("module-differences", compared.lines, "No call differs.")) || "");
    } catch (problem) {
      said.replaceChildren(failure(problem, () => show(name)));
    }
  }

  page.repeat(2000, load);
  return h("div", {}, heading("Modules", LEAD), h("section", { class: "card" }, list), h("div", { class: "stack below" }, said));
}

/** A module in a row. */
function line(page, module, changed, show) {
  const { activation, figures } = module;
  const verdict = (word) => ["num", figures ? count(figures.verdicts[word] ?? 0) : "–"];
  const failures = Object.entries(figures?.failures ?? {}).filter(([, n]) => n > 0);
  const newest = module.versions[0];
  return row(COLUMNS, { "data-module": module.name },
    ["", [h("strong", {}, module.name), h("div", { class: "muted small" }, `${bytes(newest.bytes).join(" ")}, pushed ${clock(newest.pushed_at)}`)], exact(newest.pushed_at)],
    ["", activation ? [h("code", {}, short(activation.hash)), activation.base && h("div", { class: "muted small" }, `before: ${short(activation.base)}`)] : "–"],
    ["", activation ? whom(activation) : "–"],
    ["", figures ? badge(figures.standing, KINDS[figures.standing]) : badge("not active", "")],
    verdict("pass"), verdict("drop"), verdict("reject"), verdict("replace"),
    ["num", figures ? count(failures.reduce((sum, [, n]) => sum + n, 0)) : "–", failures.map(([why, n]) => `${why}: ${n}`).join(", ")],
    ["actions", actions(page, module, changed, show)]);
}

const short = (hash) => hash.slice(0, 12);

/** For whom a version is activated. */
function whom({ percent, node, domain, shadow }) {
  const all = domain ?? "all";
  const of = percent === 100 ? all : `${percent} % of ${all}`;
  const part = node ? `${of} on ${node}` : of;
  return shadow ? [part, h("div", { class: "muted small" }, "in shadow")] : part;
}

function actions(page, { name, activation }, changed, show) {
  const at = (...more) => path("v1", "admin", "modules", name, ...more);
  const does = (act, text) => page.attempt(async () => { await act(); page.say(text); await changed(); });
  const log = button("Log", "quiet", () => show(name), { "data-testid": "module-show" });
  if (!activation) return log;
  const back = activation.base && button("Roll back", "quiet danger", async () => {
    const yes = await confirm("Roll back?", `${name}@${short(activation.base)} decides again, for all.`, "Roll back");
    if (yes) await does(() => post(at("rollback"), {}), `${name} is rolled back.`);
  }, { "data-testid": "module-rollback" });
  const off = button("Deactivate", "quiet danger", async () => {
    const yes = await confirm("Deactivate this module?", `What ${name} decides about passes from then on.`, "Deactivate");
    if (yes) await does(() => del(at("activation")), `${name} is not active any more.`);
  }, { "data-testid": "module-deactivate" });
  return [log, back, off].filter(Boolean);
}

function lines(id, said, none) {
  if (!said.length) return h("p", { class: "muted" }, none);
  return table(id, ["At", "Text"], said.map((l) => row(["At", "Text"], {}, ["", clock(l.at), exact(l.at)], l.text)));
}
