// Devices: listed, enrolled, their secrets changed.

import { del, get, here, path, post } from "./api.js";
import { badge, confirm, dayCell, empty, field, h, toast } from "./dom.js";

const COLUMNS = ["Device", "State", "Waiting", "Enrolled", ""];

export function devices() {
  const rows = h("tbody", {});
  const where = h("div", {});
  const side = h("div", { class: "stack" });
  const more = h("button", { class: "button", type: "button", hidden: true, onclick: () => load(next) }, "Show more");
  let next = null;

  async function load(after) {
    try {
      const page = await get("/v1/devices", here({ after, limit: 50 }));
      if (!after) rows.replaceChildren();
      rows.append(...page.devices.map(row));
      next = page.next;
      more.hidden = !next;
      where.replaceChildren(rows.children.length ? table() : empty("No devices yet", "Enrol the first one with the form."));
    } catch (problem) {
      where.replaceChildren(h("p", { class: "error-text", role: "alert" }, problem.message));
    }
  }

  function table() {
    return h("div", { class: "table-wrap" }, h("table", { "data-testid": "devices" },
      h("thead", {}, h("tr", {}, COLUMNS.map((t) => h("th", { scope: "col" }, t || h("span", { class: "visually-hidden" }, "Actions"))))), rows));
  }

  function row(d) {
    const enabled = d.state === "enabled";
    const button = (text, kind, act) => h("button", { class: `button quiet ${kind}`, type: "button", onclick: () => attempt(act) }, text);
    return h("tr", { "data-device": d.id },
      h("td", { class: "mono" }, d.id), h("td", {}, badge(d.state, enabled ? "good" : "bad")),
      h("td", { class: "num" }, String(d.pending)), dayCell(d.created_at),
      h("td", { class: "actions" },
        button("New secret", "", () => rotate(d)),
        button(enabled ? "Disable" : "Enable", "", () => toggle(d, enabled)),
        button("Remove", "danger", () => remove(d))));
  }

  async function attempt(act) {
    try {
      await act();
    } catch (problem) {
      toast(problem.message, "bad");
    }
  }

  async function rotate(d) {
    if (!(await confirm(`A new secret for ${d.id}?`, "The old one stops working and its sessions end.", "New secret"))) return;
    show("New secret", await post(path("v1", "devices", d.id, "rotate"), {}, here()));
  }

  async function toggle(d, enabled) {
    await post(path("v1", "devices", d.id, enabled ? "disable" : "enable"), undefined, here());
    load();
  }

  async function remove(d) {
    if (!(await confirm(`Remove ${d.id}?`, "All that waits for it goes with it.", "Remove"))) return;
    await del(path("v1", "devices", d.id), here());
    toast(`${d.id} is gone.`);
    load();
  }

  function show(title, device) {
    side.querySelector(".secret")?.remove();
    const copy = h("button", { class: "button", type: "button", onclick: () => navigator.clipboard?.writeText(device.secret).then(() => toast("Copied.")) }, "Copy");
    side.prepend(h("section", { class: "secret", "data-testid": "secret" }, h("h2", {}, title), h("p", { class: "small" }, `For ${device.jid}. It is shown now and never again.`),
      h("code", { id: "device-secret" }, device.secret), h("div", { class: "row end" }, copy)));
  }

  side.append(enrolment((device) => { show("Enrolled", device); load(); }));
  load();
  return h("div", {},
    h("div", { class: "page-head" }, h("div", {}, h("h1", {}, "Devices"), h("p", { class: "muted" }, "Accounts that log in and receive."))),
    h("div", { class: "grid side wide-left" }, h("section", { class: "card" }, h("h2", {}, "All devices"), where, more), side));
}

function enrolment(enrolled) {
  const id = h("input", { id: "device-id", "data-testid": "device-id", placeholder: "made by the server", autocomplete: "off", autocapitalize: "none", spellcheck: "false" });
  const error = h("p", { class: "error-text", role: "alert" });
  const onsubmit = async (event) => {
    event.preventDefault();
    error.textContent = "";
    try {
      enrolled(await post("/v1/devices", id.value ? { id: id.value } : {}, here()));
      id.value = "";
    } catch (problem) {
      error.textContent = problem.message;
    }
  };
  return h("form", { id: "device-form", class: "card form", onsubmit }, h("h2", {}, "Enrol a device"),
    field("Id", id, "The local part of its address. The server makes the secret."),
    error, h("div", { class: "row end" }, h("button", { id: "device-enrol", class: "button primary", "data-testid": "device-enrol", type: "submit" }, "Enrol")));
}
