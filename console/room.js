// One room: its configuration, who is in it, whom it lists, and what was said in it to those who may read that.

import { del, patch, path, put, session } from "./api.js";
import { address, badge, button, check, confirm, empty, facts, field, h, input, link, select } from "./dom.js";
import { count, exact, moment } from "./format.js";
import { card, failure, form, heading, listing, row, table } from "./page.js";

const OCCUPANTS = ["Nick", "May", "Is to the room", "Clients", ""];
const MEMBERS = ["Account", "Is to the room", "Nick", ""];
const MESSAGES = ["From", "Said", "At", ""];
const MESSAGES_MAX = 50;
const ROLES = { moderator: ["moderate", "accent"], participant: ["speak", "good"], visitor: ["listen", ""] };
const AFFILIATIONS = { owner: "accent", admin: "accent", member: "good", outcast: "bad", none: "" };
const LIGHT = ["none", "member", "owner"];
const MUC = ["none", "member", "admin", "owner", "outcast"];

export function room(page) {
  const [jid] = page.params;
  const [name, host = ""] = jid.split("@");
  const domain = host.slice(host.indexOf(".") + 1) || session.domain;
  const isLight = host.startsWith("muclight.");
  const query = { domain };
  const url = (...more) => path("v1", "rooms", jid, ...more);
  const [head, about, inside, said, settings] = Array.from({ length: 5 }, () => h("div", {}));
  const listed = members(page, { url, query, isLight, changed: () => load() });
  const body = h("div", { class: "grid side" },
    h("div", { class: "stack" }, about, inside, said), h("div", { class: "stack" }, listed.element, listed.form, settings));

  async function load() {
    try {
      const r = await page.get(url(), query);
      head.replaceChildren(heading(h("span", { class: "break" }, r.config.title || name), h("span", { class: "mono break" }, r.jid),
        button("Remove", "danger", remove, { "data-testid": "room-remove" })));
      about.replaceChildren(card("Room", facts([
        ["Kind", isLight ? "MUC Light" : "XEP-0045"],
        ["Occupants now", isLight ? "its members" : count(r.occupants)],
        ["Accounts it lists", count(r.members)],
        ["Subject", r.subject ? r.subject.text || "–" : "–"],
        ["In lists", r.config.public ? "yes" : "no"],
        ["Enters", r.config.members_only ? "members only" : r.config.password ? "with the password" : "everybody"],
        ["Keeps messages", r.config.archive ? "yes" : "no"],
        ["Stays when empty", r.config.persistent ? "yes" : "no"],
        ["Created", moment(r.created_at)],
      ])));
      settings.replaceChildren(configuration(page, r, { url, query, isLight, saved: () => { page.say("The room is configured."); load(); } }));
      body.hidden = false;
    } catch (problem) {
      body.hidden = true;
      head.replaceChildren(heading(h("span", { class: "break" }, jid)), h("section", { class: "card" }, failure(problem, load)));
    }
  }

  const remove = () => page.attempt(async () => {
    const text = "Its members and its archive are deleted, and those who are in it leave. This cannot be undone.";
    if (!(await confirm(`Remove ${jid}?`, text, "Remove the room", name))) return;
    await del(url(), query);
    location.hash = address("rooms");
    page.say(`The room ${jid} is removed.`);
  });

  if (!isLight) inside.append(occupants(page, { url, query, changed: () => load() }));
  said.append(messages(page, { url, query }));
  page.load(load);
  return h("div", {}, head, body);
}

/** Those who are in the room now. */
function occupants(page, { url, query, changed }) {
  const kick = (nick) => page.attempt(async () => {
    if (!(await confirm(`Remove ${nick} from the room?`, "It may enter again, unless it is made an outcast.", "Remove"))) return;
    await del(url("occupants", nick), query);
    page.say(`${nick} has left.`);
    all.reload();
    changed();
  });
  const all = listing(page, {
    id: "occupants", title: "Occupants", columns: OCCUPANTS,
    read: (after) => [url("occupants"), { ...query, after, limit: 50 }],
    line: (o) => row(OCCUPANTS, { "data-occupant": o.nick }, ["jid", o.nick], badge(...(ROLES[o.role] ?? [o.role])), badge(o.affiliation, AFFILIATIONS[o.affiliation]),
      ["mono jid", o.clients.map((client) => h("div", {}, account(client)))],
      ["actions", button("Remove", "quiet danger", () => kick(o.nick), { "data-testid": "room-kick" })]),
    none: ["Nobody is here", "Nobody is in the room now."],
  });
  return all.element;
}

/** The accounts that the room lists, and the form that changes what one is to it. */
function members(page, { url, query, isLight, changed }) {
  const after = () => { all.reload(); changed(); };
  const remove = (jid) => page.attempt(async () => {
    if (!(await confirm(`Take ${jid} off the list?`, "It is nothing to the room any more; out of a room for members only it leaves.", "Take off"))) return;
    await del(url("members", jid), query);
    after();
  });
  const all = listing(page, {
    id: "members", title: "Accounts that it lists", columns: MEMBERS,
    read: (next) => [url("members"), { ...query, after: next, limit: 50 }],
    line: (m) => row(MEMBERS, { "data-member": m.jid }, ["mono jid", [account(m.jid), m.reason && h("div", { class: "muted small" }, m.reason)]],
      badge(m.affiliation, AFFILIATIONS[m.affiliation]), ["jid", m.nick ?? ""],
      ["actions", button("Take off", "quiet danger", () => remove(m.jid), { "data-testid": "member-remove" })]),
    none: ["It lists nobody", "Accounts become members by an admin of the room, or with the form."],
  });
  const who = input("member-jid", { required: true, placeholder: "alice" });
  const is = select("member-affiliation", (isLight ? LIGHT : MUC).map((word) => [word, word]), "member");
  return {
    element: all.element,
    form: form(page, {
      id: "member", title: "What an account is to the room", submit: "Set", pointers: { "/affiliation": is },
      fields: h("div", { class: "fields" }, field("Account", who), field("Is", is)),
      act: async () => {
        await put(url("members", who.value.trim()), { affiliation: is.value }, query);
        page.say(`${who.value.trim()} is ${is.value}.`);
        who.value = "";
        after();
      },
    }),
  };
}

/** What was said: read when it is asked for, because it is noted who reads. */
function messages(page, { url, query }) {
  if (!session.own.scopes.includes("read_messages")) {
    return card("Messages", h("p", { class: "muted small" }, "What was said is shown to keys with the scope read_messages."));
  }
  const where = h("div", {});
  const foot = h("div", { class: "card-foot" });
  const more = (text, before) => button(text, "", () => page.attempt(() => read(before)), { "data-testid": "messages-read" });
  let shown = null;

  async function read(before) {
    const answer = await page.get(url("messages"), { ...query, before, limit: MESSAGES_MAX });
    if (!before) shown = table("messages", MESSAGES, []);
    shown.querySelector("tbody").append(...answer.messages.map(line));
    where.replaceChildren(shown.querySelector("tbody").children.length ? shown : empty("No messages", "Nothing that was said is kept."));
    foot.replaceChildren(...(answer.next ? [more("Show older ones", answer.next)] : []));
  }

  const retract = (id) => page.attempt(async () => {
    if (!(await confirm("Retract this message?", "Those who are in the room are told, and the archive keeps only that it was retracted.", "Retract"))) return;
    await del(url("messages", String(id)), query);
    await read();
  });
  const line = (m) => row(MESSAGES, { "data-message": String(m.id) }, ["jid", nick(m.from)], ["jid", m.body ?? h("span", { class: "muted" }, "(no text)")],
    ["when", exact(m.received_at)], ["actions", button("Retract", "quiet danger", () => retract(m.id))]);
  foot.append(more("Show what was said", undefined), h("span", { class: "muted small" }, "It is noted that this key reads it."));
  return card("Messages", where, foot);
}

/** The form for what is configured most. */
function configuration(page, r, { url, query, isLight, saved }) {
  const { config } = r;
  const title = h("input", { id: "room-title", maxlength: 256, autocomplete: "off", value: config.title });
  const about = h("input", { id: "room-description", maxlength: 1024, autocomplete: "off", value: config.description });
  const most = h("input", { id: "room-max-users", type: "number", min: 0, max: 1000000, value: config.max_users, required: true, inputmode: "numeric" });
  const flags = [["public", "Everybody can find it"], ["members_only", "Only members may enter"], ["moderated", "Who has no voice listens"], ["non_anonymous", "Everybody sees the addresses"], ["archive", "Messages are kept"]];
  const ticked = flags.map(([member, text]) => [member, check(`room-${member}`, text, { checked: config[member] })]);
  const shown = isLight ? ticked.filter(([member]) => member === "archive") : ticked;
  return form(page, {
    id: "room-settings", title: "Configuration", submit: "Save", pointers: { "/title": title, "/description": about, "/max_users": most },
    fields: [field("Title", title), !isLight && field("About", about), !isLight && field("Occupants at most", most, "0: as many as the node allows."),
      h("div", { class: "checks" }, shown.map(([, control]) => control))],
    act: async () => {
      const wanted = Object.fromEntries(shown.map(([member, control]) => [member, control.querySelector("input").checked]));
      wanted.title = title.value;
      if (!isLight) Object.assign(wanted, { description: about.value, max_users: Number(most.value) });
      await patch(url(), wanted, query);
      saved();
    },
  });
}

/** An account, by the address of one of its clients. */
function account(jid) {
  const at = jid.indexOf("/");
  const bare = at < 0 ? jid : jid.slice(0, at);
  return [link(bare, "devices", bare), jid.slice(bare.length)];
}

/** Who said something, by its address in the room. */
function nick(from) {
  const at = (from ?? "").indexOf("/");
  return at < 0 ? "the room" : from.slice(at + 1);
}
