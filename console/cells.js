// The cells of a front: which answer, how devices are shared out, and emptying one into the others.

import { here, patch, path, post, session } from "./api.js";
import { badge, button, confirm, empty, field, h, input } from "./dom.js";
import { bytes, count, duration, many } from "./format.js";
import { card, failure, form, heading, row, table } from "./page.js";

const COLUMNS = ["Cell", "State", "Weight", "Devices", "Held", "Moved away", "Drain", ""];
const MOVES = ["Device", "From", "To", "State"];
const MOVES_SHOWN = 50;

export function cells(page) {
  const [where, moves] = [h("div", {}, h("p", { class: "loading" }, "Loading…")), h("div", {})];
  const below = h("div", { class: "grid two below" }, card("Devices that move", moves), mover(page));

  async function load() {
    try {
      const [{ cells }, answer] = await Promise.all([page.get("/v1/cells"), page.get("/v1/moves")]);
      below.hidden = false;
      const all = cells.reduce((sum, cell) => sum + (cell.drain === "off" ? cell.weight : 0), 0);
      where.replaceChildren(cells.length
        ? table("cells", COLUMNS, cells.map((cell) => line(page, cell, all, load)))
        : empty("No cells", h("span", {}, "Add one: ", h("code", {}, "carillon cells add NAME --cell-url URL --cell-key KEY"))));
      moves.replaceChildren(...moving(answer.moves));
    } catch (problem) {
      below.hidden = true;
      where.replaceChildren(problem.code === "no-front"
        ? empty("Not a front", "This node stands in front of no cells: its setting cells.front is off.")
        : failure(problem, load));
    }
  }

  page.repeat(2000, load);
  return h("div", {},
    heading("Cells", "Independent services behind this front. Each new device is given to one of them, by weight; a cell that is away delays its own devices only. Updated every two seconds."),
    h("section", { class: "card" }, where), below);
}

/** A cell in a row; `all` is the sum of the weights of those that are given devices. */
function line(page, cell, all, changed) {
  const [size, unit] = bytes(cell.held_bytes);
  const share = cell.drain === "off" && all > 0 ? `${Math.round((100 * cell.weight) / all)} % of new devices` : "no new devices";
  const away = cell.away_ms === undefined ? "" : `For ${duration(cell.away_ms)}: ${cell.why ?? "it does not answer"}`;
  return row(COLUMNS, { "data-cell": cell.cell },
    ["", [h("strong", {}, cell.cell), h("div", { class: "muted small" }, cell.url)]],
    ["", [badge(cell.state, cell.state === "up" ? "good" : "bad"), away && h("div", { class: "muted small" }, away)]],
    ["num", [count(cell.weight), h("div", { class: "muted small" }, share)]],
    ["num", count(cell.devices)],
    ["num", [count(cell.held), cell.held > 0 && h("div", { class: "muted small" }, `${size} ${unit}`)]],
    ["num", count(cell.moved)],
    ["", cell.drain === "off" ? "–" : [badge(cell.drain, cell.drain === "running" ? "warn" : ""), h("div", { class: "muted small" }, `up to ${count(cell.rate)} per second`)]],
    ["actions", actions(page, cell, changed)]);
}

function actions(page, cell, changed) {
  const drain = (to, said) => page.attempt(async () => {
    await patch(path("v1", "cells", cell.cell), { drain: to });
    page.say(said);
    await changed();
  });
  const stop = button("End the drain", "quiet", () => drain("off", `${cell.cell} is given devices again; those that moved stay where they are.`), { "data-testid": "cell-off" });
  if (cell.drain === "running") return [button("Pause", "quiet", () => drain("paused", "No more devices begin to move."), { "data-testid": "cell-pause" }), stop];
  if (cell.drain === "paused") return [button("Go on", "quiet", () => drain("running", "Devices move again."), { "data-testid": "cell-resume" }), stop];
  return button("Drain", "quiet danger", async () => {
    const text = `Its ${many(cell.devices, "device")} move to the other cells, up to ${count(cell.rate)} per second, and it is given no new ones. Each is away for a moment; nothing is lost.`;
    if (await confirm(`Drain ${cell.cell}?`, text, "Drain", cell.cell)) await drain("running", `${cell.cell} is drained.`);
  }, { "data-testid": "cell-drain" });
}

/** The devices that move, or that none does. */
function moving(all) {
  if (all.length === 0) return [empty("None", "Devices move when their cell is drained, or one by one.")];
  const lines = all.slice(0, MOVES_SHOWN).map((one) => row(MOVES, {}, ["jid", one.device], ["", one.from], ["", one.to], ["", badge(one.state)]));
  const more = all.length > MOVES_SHOWN ? h("p", { class: "muted small" }, `And ${count(all.length - MOVES_SHOWN)} more.`) : "";
  return [table("moves", MOVES, lines), more];
}

/** Moves one device. */
function mover(page) {
  const device = input("move-device", { required: true, placeholder: `alice@${session.domain}` });
  const to = input("move-to", { required: true, placeholder: "eu-2" });
  return form(page, {
    id: "move", title: "Move a device", submit: "Move",
    fields: [field("Device", device, "Its id, or its address."), field("To the cell", to)],
    pointers: { "/device": device, "/to": to },
    act: async (element) => {
      const { device: moved, to: cell } = await post("/v1/moves", { device: device.value.trim(), to: to.value.trim() }, here());
      page.say(`${moved} moves to ${cell}.`);
      element.reset();
    },
  });
}
