// Devices: listed and enrolled.

import { here, post, session } from "./api.js";
import { badge, field, h, input, link } from "./dom.js";
import { day, moment } from "./format.js";
import { form, heading, listing, row, secret } from "./page.js";

const COLUMNS = ["Device", "State", "Notifications waiting", "Enrolled"];

export function devices(page) {
  const made = h("div", {});
  const all = listing(page, {
    id: "devices", title: "All devices", columns: COLUMNS,
    read: (after) => ["/v1/devices", here({ after, limit: 50 })],
    line: (d) => row(COLUMNS, { "data-device": d.id }, ["mono jid", link(d.id, "devices", d.jid)], badge(d.state, d.state === "enabled" ? "good" : "bad"),
      ["num", String(d.pending)], ["when", day(d.created_at), moment(d.created_at)]),
    none: ["No devices yet", "Enrol the first one with the form."],
  });
  const enrolled = (device) => {
    made.replaceChildren(secret(page, "Device enrolled", `The secret of ${device.jid}. It is not shown again.`, device.secret));
    all.reload();
  };
  return h("div", {},
    heading("Devices", `Accounts of ${session.domain} that log in and receive.`),
    h("div", { class: "grid side wide-left" }, all.element, h("div", { class: "stack" }, made, enrolment(page, enrolled))));
}

function enrolment(page, enrolled) {
  const id = input("device-id", { placeholder: "Generated if empty" });
  return form(page, {
    id: "device", title: "Enrol a device", submit: "Enrol", pointers: { "/id": id },
    fields: field("Id", id, "The local part of its JID. The server generates the secret."),
    act: async () => {
      enrolled(await post("/v1/devices", id.value ? { id: id.value } : {}, here()));
      id.value = "";
    },
  });
}
