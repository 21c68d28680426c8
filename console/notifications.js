// Notifications, found by their ids.

import { address, field, h, input } from "./dom.js";
import { form, heading } from "./page.js";

export function notifications(page) {
  const id = input("notification-id", { required: true, placeholder: "01KAG8X4RZ5T9V7Q2M3N6P8W0Y", maxlength: 26 });
  return h("div", {}, heading("Notifications", "Find a notification by its id: what became of it, and when."),
    h("div", { class: "grid side" }, form(page, {
      id: "notification", submit: "Open", fields: field("Id", id),
      act: () => { location.hash = address("notifications", id.value.trim().toUpperCase()); },
    })));
}
