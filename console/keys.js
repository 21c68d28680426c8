// API keys: listed, created, removed.

import { del, path, post, session } from "./api.js";
import { badge, button, check, confirm, field, h, input, select } from "./dom.js";
import { day, moment } from "./format.js";
import { form, heading, listing, row, secret } from "./page.js";

const COLUMNS = ["Key", "Scopes", "Domain", "Created", ""];
/** Times after which a key may expire, in days. */
const LIVES = [["", "Never"], ["1", "In a day"], ["30", "In 30 days"], ["90", "In 90 days"], ["365", "In a year"]];
const DAY_MS = 86_400_000;
const SCOPES = [
  ["send", "Send notifications and follow them"], ["broadcast", "Send notifications to all accounts of a domain"], ["topics", "Publish to topics and manage them"], ["enrol", "Enrol devices and manage them"],
  ["rooms", "Manage rooms and their members, say something in them, and moderate them"],
  ["links", "Make short links, change them and take them down"],
  ["matches", "Declare queues of the matchmaker, enter tickets for accounts, and look at matches"],
  ["chat", "Act for accounts: send messages, edit contacts and block lists, see conversations"],
  ["admin", "Everything but messages, including domains and keys"], ["read_messages", "Read the messages of accounts; each time is logged"],
  ["trace_payload", "See what stanzas say in traces of accounts; each trace is logged"],
];
/** The value of the choice that is no domain. */
const WHOLE = "";

export function keys(page) {
  const made = h("div", {});
  const all = listing(page, {
    id: "keys", title: "All keys", columns: COLUMNS,
    read: () => ["/v1/admin/keys"],
    line: (key) => row(COLUMNS, { "data-key": key.id },
      ["jid", [h("div", {}, key.name, key.id === session.own.id && [" ", badge("this key", "accent")]), h("div", { class: "muted small" }, `Number ${key.id}`), key.certificates.length > 0 && h("div", { class: "muted small" }, `With a certificate of ${key.certificates.join(", ")}`)]],
      h("div", { class: "row tight" }, key.scopes.map((scope) => badge(scope, scope === "admin" ? "warn" : ""))),
      key.domain ?? h("span", { class: "muted" }, "whole node"), ["when", [day(key.created_at), expiry(key)], moment(key.created_at)],
      ["actions", button("Remove", "quiet danger", () => remove(key))]),
    none: ["No keys", "Create the first one with the form."],
  });

  const remove = (key) => page.attempt(async () => {
    const own = key.id === session.own.id;
    const text = own ? "You are signed in with this key: you will be signed out." : "Requests with it are refused at once, and its event streams end.";
    if (!(await confirm(`Remove the key ${key.name}?`, text, "Remove"))) return;
    await del(path("v1", "admin", "keys", String(key.id)));
    page.say(`The key ${key.name} is removed.`);
    all.reload();
  });

  const created = (key) => {
    made.replaceChildren(secret(page, "Key created", `The key ${key.name}. Copy it now: it is not shown again.`, key.key));
    all.reload();
  };
  return h("div", {}, heading("API keys", "A key allows what its scopes name, in one domain or on the whole node."),
    h("div", { class: "grid side wide-left" }, all.element, h("div", { class: "stack" }, made, creation(page, created))));
}

/** When a key expires, or that it has; nothing of one that never does. */
function expiry(key) {
  if (!key.expires_at) return null;
  const over = Date.parse(key.expires_at) <= Date.now();
  return h("div", { class: "small", title: moment(key.expires_at) }, over ? badge("expired", "bad") : `expires ${day(key.expires_at)}`);
}

function creation(page, created) {
  const name = input("key-new-name", { required: true, maxlength: 256, placeholder: "back end" });
  const own = session.own.domain;
  const reach = [...(own ? [] : [[WHOLE, "Whole node"]]), ...session.domains.map((d) => [d, d])];
  const domain = select("key-domain", reach, own ?? WHOLE);
  const life = select("key-expires", LIVES, "");
  const certificates = input("key-certificates", { maxlength: 4096, placeholder: "dns:backend.example.org" });
  const scopes = SCOPES.map(([scope, text]) => [scope, check(`scope-${scope}`, [h("b", {}, scope), `: ${text}`])]);
  return form(page, {
    id: "key-new", title: "New key", submit: "Create", pointers: { "/name": name, "/domain": domain, "/expires_at": life, "/certificates": certificates },
    fields: [field("Name", name, "Who uses it, and for what."), field("Domain", domain), field("Expires", life),
      field("Client certificates", certificates, "Names of which the certificate that is shown with the key must have one, with commas between. Empty: none is needed."), h("fieldset", { class: "checks" }, h("legend", { class: "label" }, "Scopes"), scopes.map(([, box]) => box))],
    act: async (element) => {
      const chosen = scopes.filter(([, box]) => box.querySelector("input").checked).map(([scope]) => scope);
      if (chosen.length === 0) throw new Error("Choose at least one scope.");
      const expires = life.value && new Date(Date.now() + Number(life.value) * DAY_MS).toISOString();
      const names = certificates.value.split(",").map((name) => name.trim()).filter(Boolean);
      created(await post("/v1/admin/keys", { name: name.value, scopes: chosen, certificates: names, ...(domain.value ? { domain: domain.value } : {}), ...(expires ? { expires_at: expires } : {}) }));
      element.reset();
    },
  });
}
