// The form for a notification, on the page of its own and on a device's.

import { here, post } from "./api.js";
import { check, field, h, input, select } from "./dom.js";
import { form, payload } from "./page.js";

const AUDIENCES = [["always", "Always: stored until acknowledged"], ["connected", "Connected: dropped if not connected"], ["active", "Active: dropped if not in use"]];
const PRIORITIES = [["high", "High"], ["normal", "Normal"], ["low", "Low"]];

/** A form that sends to `target`, or to whom it asks for. `sent` is given the results. */
export function compose(page, { title, target, query, sent }) {
  const to = input("send-to", { required: true, placeholder: "alice, bob@example.org" });
  const text = h("textarea", { id: "send-payload", "data-testid": "send-payload", required: true, spellcheck: "false" });
  text.value = '{ "title": "Hello", "body": "Your match is ready." }';
  const audience = select("send-audience", AUDIENCES, "always");
  const priority = select("send-priority", PRIORITIES, "normal");
  const ttl = h("input", { id: "send-ttl", type: "number", min: 1, max: 2592000, placeholder: "Default", inputmode: "numeric" });
  const collapse = input("send-collapse", { maxlength: 64, placeholder: "None" });
  const link = input("send-link", { type: "url", maxlength: 2048, placeholder: "None" });
  const dry = check("send-dry-run", "Check only, send nothing");

  function body() {
    const targets = target ? [target] : to.value.split(/[\s,]+/).filter(Boolean);
    const body = { to: targets.length === 1 ? targets[0] : targets, audience: audience.value, priority: priority.value, ...payload(text.value) };
    if (ttl.value) body.ttl = Number(ttl.value);
    if (link.value.trim()) body.link = link.value.trim();
    if (collapse.value) body.collapse_key = collapse.value;
    if (dry.querySelector("input").checked) body.dry_run = true;
    return body;
  }

  async function act() {
    const answer = await post("/v1/notifications", body(), query ?? here());
    for (const { to, error } of answer.results.filter((result) => result.error)) page.say(`${to}: ${error.detail}`, "bad");
    if (!answer.dry_run) return sent(answer.results.filter((result) => result.id));
    const fine = answer.results.filter((result) => !result.error).length;
    return page.say(`Checked: ${fine} of ${answer.results.length} would be sent.`);
  }

  return form(page, {
    id: "send", title, submit: "Send", beside: dry, act, pointers: { "/to": to, "/payload": text, "/payload_xml": text, "/ttl": ttl, "/collapse_key": collapse, "/link": link },
    fields: [
      !target && field("To", to, "Device ids or JIDs, separated by commas."),
      field("Payload", text, "Any JSON value, or one XML element in a namespace of its own."),
      field("Link", link, "An address that is shortened for each recipient, as the member link of the payload: who follows it has opened the notification."),
      field("Audience", audience),
      h("div", { class: "fields" }, field("Priority", priority), field("Time to live (s)", ttl), field("Collapse key", collapse)),
    ],
  });
}
