// Rooms: found by the beginnings of their names, and created.

import { here, path, put, session } from "./api.js";
import { address, badge, check, field, h, input, link, select } from "./dom.js";
import { form, heading, listing, row } from "./page.js";

const COLUMNS = ["Room", "Address", "In lists"];
const KINDS = [["muc", "Rooms (XEP-0045)"], ["muclight", "MUC Light"]];

export function rooms(page) {
  const begins = input("room-prefix", { type: "search", placeholder: "tea", "aria-label": "Show only rooms whose names begin with this" });
  const kind = select("room-kind", KINDS, "muc");
  const all = listing(page, {
    id: "rooms", title: "All rooms", columns: COLUMNS,
    read: (after) => ["/v1/rooms", here({ after, limit: 50, kind: kind.value, prefix: begins.value.trim() })],
    line: (r) => row(COLUMNS, { "data-room": r.jid },
      ["jid", [link(r.name, "rooms", r.jid), r.title && h("div", { class: "muted small break" }, r.title)]],
      ["mono jid", r.jid], r.public ? badge("listed", "good") : badge("hidden")),
    none: ["No rooms", "Clients create them by entering, back ends with the form or the API."],
  });
  const find = (event) => { event.preventDefault(); all.reload(); };
  kind.addEventListener("change", () => all.reload());
  const created = ({ jid }) => {
    page.say(`The room ${jid} is created.`);
    location.hash = address("rooms", jid);
  };
  return h("div", {},
    heading("Rooms", `Conversations of many among the accounts of ${session.domain}.`,
      h("form", { class: "row search", role: "search", onsubmit: find }, begins, h("button", { class: "button", type: "submit" }, "Find"))),
    h("div", { class: "grid side wide-left" }, all.element,
      h("div", { class: "stack" }, h("div", { class: "card" }, field("Kind", kind)), creation(page, kind, created))));
}

function creation(page, kind, created) {
  const name = input("room-name", { required: true, maxlength: 1023, placeholder: "tea" });
  const title = h("input", { id: "room-title", maxlength: 256, autocomplete: "off" });
  const closed = check("room-members-only", "Only members may enter");
  return form(page, {
    id: "room", title: "New room", submit: "Create", pointers: { "/title": title, "/members_only": closed },
    fields: [field("Name", name, "The local part of its address."), field("Title", title, "A name for people. Optional."), closed],
    act: async () => {
      const light = kind.value === "muclight";
      const wanted = { title: title.value };
      // Nobody enters a room of MUC Light but those it lists.
      if (!light) wanted.members_only = closed.querySelector("input").checked;
      const named = light ? `${name.value}@muclight.${session.domain}` : name.value;
      created(await put(path("v1", "rooms", named), wanted, here()));
    },
  });
}
