// Domains: listed, created, their policies changed, removed.

import { del, patch, path, put, session } from "./api.js";
import { badge, button, check, confirm, field, h, input, select } from "./dom.js";
import { bytes, count, many } from "./format.js";
import { card, failure, form, heading, listing, row, table } from "./page.js";

const COLUMNS = ["Domain", "Sessions per account", "In-band registration", "Who may create topics", "Rooms", "Archive", ""];
const USED = ["Quota", "Used", "At most", "Refused"];
/** Bounds of a domain and of one account in it, by the members of the policy: 0 is none. */
const BOUNDS = [
  ["accounts_max", "Maximum number of accounts", 100000000, "0: any number."],
  ["sessions_total_max", "Maximum number of sessions, all accounts", 100000000, "On each node. 0: any number."],
  ["room_archive_days", "Days for which archives of rooms keep a message", 36500, "0: as long as other archives."],
  ["topics_max", "Maximum number of topics", 10000000, "0: any number."],
  ["topics_owned_max", "Maximum number of topics that an account owns", 10000000, "0: as many as the node allows."],
  ["subscriptions_max", "Maximum number of topics that an account follows", 10000000, "0: as many as the node allows."],
  ["requests_per_second", "API requests per second", 1000000, "By all keys of the domain, to each node. 0: any number."],
  ["stanzas_per_second", "Stanzas per second from clients", 1000000, "All clients together, on each node. 0: any number."],
  ["bytes_per_second", "Bytes per second from clients", 4294967295, "0: any number."],
  ["bytes_out_per_second", "Bytes per second to clients", 4294967295, "0: any number."],
  ["stored_bytes_max", "Bytes that are stored of accounts and topics", 9007199254740991, "Measured every minute. 0: any number."],
];
const SESSIONS = [["multi", "Several at once"], ["single", "One: a new login ends the old session"]];
const CREATE = [["any", "Any account"], ["admin", "Administrators only"]];

export function domains(page) {
  const side = h("div", { class: "stack" });
  const whole = !session.own.domain;
  const all = listing(page, {
    id: "domains", title: "All domains", columns: COLUMNS,
    read: () => ["/v1/admin/domains"],
    line: ({ domain, policy }) => row(COLUMNS, { "data-domain": domain },
      ["jid", [h("span", { class: "mono" }, domain), domain === session.own.default_domain && [" ", badge("default")]]],
      policy.sessions === "single" ? "one" : `up to ${policy.sessions_max}`, policy.registration ? badge("allowed", "warn") : "not allowed",
      policy.pubsub_create === "any" ? "any account" : "administrators only", roomy(policy), archived(policy),
      ["actions", [button("Policy", "quiet", () => edit(domain, policy)), whole && button("Remove", "quiet danger", () => remove(domain))]]),
    none: ["No domains", "Create the first one with the form."],
  });

  async function saved(domain) {
    page.say(`${domain} is saved.`);
    side.replaceChildren(...(whole ? [editor(page, { saved })] : []));
    await all.reload();
    dispatchEvent(new Event("domains"));
  }

  function edit(domain, policy) {
    side.replaceChildren(usage(page, domain), editor(page, { domain, policy, saved, cancel: () => side.replaceChildren(...(whole ? [editor(page, { saved })] : [])) }));
    side.scrollIntoView({ block: "nearest" });
  }

  const remove = (domain) => page.attempt(async () => {
    if (!(await confirm(`Remove ${domain}?`, "Its accounts, topics, notifications and API keys are deleted and its sessions end. This cannot be undone.", "Remove the domain", domain))) return;
    await del(path("v1", "admin", "domains", domain));
    page.say(`${domain} is removed.`);
    await all.reload();
    dispatchEvent(new Event("domains"));
  });

  if (whole) side.append(editor(page, { saved }));
  return h("div", {}, heading("Domains", "Each domain has its own accounts, topics, policy and API keys."), h("div", { class: "grid side wide-left" }, all.element, side));
}

/** What of its quotas a domain uses. */
function usage(page, domain) {
  const where = h("div", {}, h("p", { class: "loading" }, "Loading…"));
  async function load() {
    try {
      const { quotas } = await page.get(path("v1", "admin", "domains", domain, "usage"));
      where.replaceChildren(table("usage", USED, quotas.map(line)));
    } catch (problem) {
      where.replaceChildren(failure(problem, load));
    }
  }
  const number = (n, none) => (n === null ? h("span", { class: "muted" }, none) : count(n));
  const line = ({ quota, used, max, refused }) => row(USED, { "data-quota": quota }, quota,
    max !== null && used >= max ? ["", [number(used), " ", badge("full", "bad")]] : number(used, "not counted"), number(max, "any number"), number(refused, "not counted"));
  page.load(load);
  return card(`Quotas of ${domain}`, where);
}

/** Who may create rooms, and how many. */
function roomy(policy) {
  const who = policy.rooms_create === "any" ? "any account" : "administrators only";
  const bounds = [policy.rooms_owned_max && `${policy.rooms_owned_max} per account`, policy.rooms_max && `${many(policy.rooms_max, "room")} at most`];
  return [who, ...bounds.filter(Boolean)].join(", ");
}

/** What archives of chat messages a domain keeps. */
function archived(policy) {
  if (!policy.archive) return h("span", { class: "muted" }, "off");
  const bounds = [policy.archive_days && many(policy.archive_days, "day"), policy.archive_messages_max && many(policy.archive_messages_max, "message"), policy.archive_bytes_max && bytes(policy.archive_bytes_max).join(" ")];
  return h("span", {}, badge("on", "good"), " ", bounds.filter(Boolean).join(", "));
}

/** The form for a new domain, or for the policy of one. */
function editor(page, { domain, policy, saved, cancel }) {
  const known = policy ?? { sessions: "multi", sessions_max: 20, registration: false, account_management: true, pubsub_create: "any", resumption_ms_max: 86400000, archive: false, archive_days: 0, keys_max: 100, rooms_create: "any", rooms_owned_max: 0, rooms_max: 0, ...Object.fromEntries(BOUNDS.map(([member]) => [member, 0])) };
  const name = input("domain-name", { required: true, maxlength: 1023, placeholder: "example.org" });
  const sessions = select("domain-sessions", SESSIONS, known.sessions);
  const most = h("input", { id: "domain-sessions-max", type: "number", min: 1, max: 1000, value: known.sessions_max, required: true, inputmode: "numeric" });
  const resumption = h("input", { id: "domain-resumption", type: "number", min: 0, max: 86400, value: known.resumption_ms_max / 1000, required: true, inputmode: "numeric" });
  const registration = check("domain-registration", "Allow in-band registration (XEP-0077)", { checked: known.registration });
  const management = check("domain-management", "Accounts change their passwords and remove themselves (XEP-0077)", { checked: known.account_management });
  const archive = check("domain-archive", "Keep chat messages in archives (XEP-0313)", { checked: known.archive });
  const days = h("input", { id: "domain-archive-days", type: "number", min: 0, max: 36500, value: known.archive_days, required: true, inputmode: "numeric" });
  const keys = h("input", { id: "domain-keys-max", type: "number", min: 1, max: 10000, value: known.keys_max, required: true, inputmode: "numeric" });
  const create = select("domain-pubsub", CREATE, known.pubsub_create);
  const rooms = select("domain-rooms-create", CREATE, known.rooms_create);
  const owned = h("input", { id: "domain-rooms-owned", type: "number", min: 0, max: 1000000, value: known.rooms_owned_max, required: true, inputmode: "numeric" });
  const all = h("input", { id: "domain-rooms-max", type: "number", min: 0, max: 1000000, value: known.rooms_max, required: true, inputmode: "numeric" });
  const bounds = BOUNDS.map(([member, label, max, hint]) => [member, h("input", { id: `domain-${member}`, type: "number", min: 0, max, value: known[member], required: true, inputmode: "numeric" }), label, hint]);
  return form(page, {
    id: "domain-edit", title: domain ? `Policy of ${domain}` : "New domain", submit: domain ? "Save" : "Create", pointers: { "/sessions_max": most, "/resumption_ms_max": resumption, "/archive_days": days, "/keys_max": keys, "/registration": registration, "/account_management": management, "/archive": archive, "/sessions": sessions, "/pubsub_create": create, "/rooms_create": rooms, "/rooms_owned_max": owned, "/rooms_max": all, ...Object.fromEntries(bounds.map(([member, control]) => [`/${member}`, control])) },
    beside: cancel && button("Cancel", "quiet", cancel),
    fields: [!domain && field("Name", name), field("Sessions per account", sessions), field("Maximum sessions per account", most, "Applies when several are allowed."),
      field("Who may create topics over XMPP", create), field("Who may create rooms over XMPP", rooms),
      field("Maximum number of rooms that an account owns", owned, "0: as many as the node allows."), field("Maximum number of rooms", all, "0: any number."),
      field("Resumption within, seconds", resumption, "How long a session waits for its client after its connection is lost, if the node allows so long. 0: it ends."), registration, management, archive,
      field("Days for which archives keep a message", days, "0: for ever."), field("Maximum number of API keys", keys),
      h("details", { class: "quotas" }, h("summary", {}, "Quotas"), bounds.map(([, control, label, hint]) => field(label, control, hint)))],
    act: async () => {
      const wanted = { sessions: sessions.value, sessions_max: Number(most.value), registration: registration.querySelector("input").checked, account_management: management.querySelector("input").checked, pubsub_create: create.value, resumption_ms_max: Math.round(Number(resumption.value) * 1000), archive: archive.querySelector("input").checked, archive_days: Number(days.value), keys_max: Number(keys.value), rooms_create: rooms.value, rooms_owned_max: Number(owned.value), rooms_max: Number(all.value), ...Object.fromEntries(bounds.map(([member, control]) => [member, Number(control.value)])) };
      const made = await (domain ? patch : put)(path("v1", "admin", "domains", domain ?? name.value), wanted);
      await saved(made.domain);
    },
  });
}
