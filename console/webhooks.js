// Webhooks: listed and created.

import { post, session } from "./api.js";
import { badge, check, field, h, input, link, select } from "./dom.js";
import { count } from "./format.js";
import { form, heading, listing, row, secret } from "./page.js";

const COLUMNS = ["Webhook", "State", "Domain", "Told of", "Events behind", "Dead letters"];
/** The ends that a webhook may be told of. */
export const ENDS = ["acknowledged", "expired", "replaced", "cancelled", "dropped", "opened"];
const KINDS = { enabled: "good", disabled: "", gone: "bad" };
/** The value of the choice that is no domain. */
const WHOLE = "";

export function webhooks(page) {
  const made = h("div", {});
  const all = listing(page, {
    id: "webhooks", title: "All webhooks", columns: COLUMNS,
    read: () => ["/v1/webhooks"],
    line: (w) => row(COLUMNS, { "data-webhook": w.id },
      ["jid", [link(w.url, "webhooks", String(w.id)), h("div", { class: "muted small" }, `Number ${w.id}`)]], state(w),
      w.domain ?? h("span", { class: "muted" }, "whole node"), told(w.states), ["num", count(w.behind)], ["num", count(w.dead_letters.count)]),
    none: ["No webhooks", "Create the first one with the form."],
  });
  const created = (w) => {
    made.replaceChildren(secret(page, "Webhook created", `Requests of webhook ${w.id} are signed with this secret. Copy it now: it is not shown again.`, w.secret));
    all.reload();
  };
  return h("div", {}, heading("Webhooks", "URLs that receive an event for each notification that ended, as signed requests that are repeated until they succeed."),
    h("div", { class: "grid side wide-left" }, all.element, h("div", { class: "stack" }, made, creation(page, created))));
}

/** Whether events are sent, and whether the receiver takes them. */
export function state(w) {
  const failing = w.failures > 0 && w.status === "enabled";
  return h("span", { class: "row tight" }, badge(w.status, KINDS[w.status]), failing && badge("failing", "warn"));
}

/** Ends in words. */
export function told(states) {
  return states.length === ENDS.length ? "all ends" : states.join(", ");
}

/** Boxes for the ends that a webhook is told of; `chosen` says which are ticked. */
export function ends(states) {
  const boxes = ENDS.map((end) => [end, check(`webhook-${end}`, end, { checked: states.includes(end) })]);
  const element = h("fieldset", { class: "checks" }, h("legend", { class: "label" }, "Events to send: notifications that were"), boxes.map(([, box]) => box));
  const chosen = () => boxes.filter(([, box]) => box.querySelector("input").checked).map(([end]) => end);
  return { element, chosen };
}

function creation(page, created) {
  const url = input("webhook-url", { type: "url", required: true, maxlength: 2048, placeholder: "https://example.org/carillon" });
  const own = session.own.domain;
  const reach = [...(own ? [] : [[WHOLE, "Whole node"]]), ...session.domains.map((d) => [d, d])];
  const domain = select("webhook-domain", reach, own ?? WHOLE);
  const states = ends(ENDS);
  return form(page, {
    id: "webhook-new", title: "New webhook", submit: "Create", pointers: { "/url": url, "/domain": domain, "/states": states.element },
    fields: [field("URL", url, "https, at a public address."), field("Domain", domain, "Events are sent for the notifications of this domain."), states.element],
    act: async (element) => {
      created(await post("/v1/webhooks", { url: url.value, states: states.chosen(), ...(domain.value ? { domain: domain.value } : {}) }));
      element.reset();
    },
  });
}
