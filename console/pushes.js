// Registrations for push: which apps are woken, by which push service, and how they fare. And endpoints, where this node is the push service.

import { del, here, path, session } from "./api.js";
import { badge, button, confirm, field, h } from "./dom.js";
import { count, day, exact, moment } from "./format.js";
import { heading, listing, row } from "./page.js";

const COLUMNS = ["Account", "App", "By", "State", "Last push", "Made", ""];
const ENDPOINT_COLUMNS = ["Account", "Client", "Application", "Made", "Expires", ""];
const CHANNELS = { web_push: "Web Push", apns: "APNs", fcm: "FCM", webhook: "webhook" };

export function pushes(page) {
  const wanted = h("input", { id: "push-account", "data-testid": "push-account", type: "search", placeholder: "Account", autocomplete: "off", autocapitalize: "none", spellcheck: false });
  const all = listing(page, {
    id: "registrations", title: "Registrations", columns: COLUMNS,
    read: (after) => ["/v1/push/registrations", here({ after, limit: 50, ...(wanted.value.trim() ? { account: wanted.value.trim() } : {}) })],
    line: (one) => row(COLUMNS, { "data-registration": one.id },
      ["jid", one.account], ["", one.node], ["", [CHANNELS[one.channel] ?? one.channel, h("div", { class: "muted small" }, one.service)]],
      ["", state(one)], ["when", one.pushed_at ? moment(one.pushed_at) : "–"], ["when", day(one.created_at), moment(one.created_at)],
      ["actions", button("End", "quiet danger", () => end(one), { "data-testid": "push-end" })]),
    none: ["No registrations", "Apps register themselves over XMPP (XEP-0357), or are registered over HTTP."],
  });
  const endpoints = listing(page, {
    id: "endpoints", title: "Endpoints", columns: ENDPOINT_COLUMNS,
    read: (after) => ["/v1/push/endpoints", here({ after, limit: 50, ...(wanted.value.trim() ? { account: wanted.value.trim() } : {}) })],
    line: (one) => row(ENDPOINT_COLUMNS, { "data-endpoint": one.id },
      ["jid", one.account], ["", one.resource], ["", [one.application.slice(0, 8), one.restricted ? h("div", { class: "muted small" }, "one sender") : ""]],
      ["when", day(one.created_at), moment(one.created_at)], ["when", moment(one.expires_at)],
      ["actions", button("Revoke", "quiet danger", () => revoke(one), { "data-testid": "endpoint-revoke" })]),
    none: ["No endpoints", "Clients that distribute pushes to applications ask for them over XMPP, where push.service_url is set."],
  });
  wanted.addEventListener("change", () => { all.reload(); endpoints.reload(); });
  const revoke = (one) => page.attempt(async () => {
    if (!(await confirm("Revoke this endpoint?", `Nothing can be pushed to this application of ${one.account} any more, until its client asks for another endpoint.`, "Revoke"))) return;
    await del(path("v1", "push", "endpoints", one.id), here({}));
    page.say("The endpoint is revoked.");
    endpoints.reload();
  });
  const end = (one) => page.attempt(async () => {
    if (!(await confirm("End this registration?", `The app ${one.node} of ${one.account} is not woken any more, until it registers again.`, "End"))) return;
    await del(path("v1", "push", "registrations", String(one.id)));
    page.say(`The registration of ${one.node} has ended.`);
    all.reload();
  });
  return h("div", {}, heading("Push", `Apps of accounts of ${session.domain} that are woken when something waits for them. A failure disables none: it is tried again.`),
    h("div", { class: "stack" }, h("div", { class: "card" }, field("Account", wanted)), all.element, endpoints.element));
}

/** Whether the last push was taken, and if not, why and how often. */
function state({ state, failures, last_error: error }) {
  if (state === "ok") return badge("ok", "good");
  return [badge("failing", "bad"), h("div", { class: "muted small", title: error && exact(error.at) }, `${count(failures)} times: ${error?.error ?? "no answer"}`)];
}
