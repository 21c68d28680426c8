// Short links: listed, created, taken down; and the files of the apps that open them.

import { del, get, here, may, path, patch, post, put, session } from "./api.js";
import { badge, button, check, confirm, field, h, input } from "./dom.js";
import { count, day, moment } from "./format.js";
import { form, heading, listing, row, secret } from "./page.js";

const COLUMNS = ["Link", "Leads to", "Clicks", "Created", ""];
const FILES = [["apple-app-site-association", "iOS"], ["assetlinks.json", "Android"]];

export function links(page) {
  const made = h("div", {});
  const wanted = h("input", { id: "link-search", type: "search", placeholder: "Part of a code or an address", autocomplete: "off", autocapitalize: "none", spellcheck: false });
  const all = listing(page, {
    id: "links", title: "All links", columns: COLUMNS,
    read: (after) => ["/v1/links", here({ after, limit: 50, ...(wanted.value ? { search: wanted.value } : {}) })],
    line: (l) => row(COLUMNS, { "data-link": l.code },
      ["jid", [h("a", { href: l.short_url, rel: "noreferrer", target: "_blank" }, l.code), h("div", { class: "muted small" }, status(l))]],
      ["jid", h("div", { class: "small" }, l.url)], ["num", count(l.clicks), l.last_click_at ? `Last: ${moment(l.last_click_at)}` : "Never followed"],
      ["when", day(l.created_at), moment(l.created_at)],
      ["actions", [button("Change", "quiet", () => change(l)), l.removed_at ? button("Bring back", "quiet", () => restore(l)) : button("Take down", "quiet danger", () => remove(l))]]),
    none: ["No links", "Shorten an address with the form."],
  });
  wanted.addEventListener("change", () => all.reload());
  const remove = (l) => page.attempt(async () => {
    if (!(await confirm(`Take the link ${l.code} down?`, "Who follows it is told that it is gone. Browsers that followed it before may remember it for a day.", "Take down"))) return;
    await del(path("v1", "links", l.code), here());
    page.say(`The link ${l.code} is taken down.`);
    all.reload();
  });
  const restore = (l) => page.attempt(async () => {
    await patch(path("v1", "links", l.code), { removed: false }, here());
    page.say(`The link ${l.code} leads on again.`);
    all.reload();
  });
  const created = (l) => {
    made.replaceChildren(secret(page, "Short link", `It leads to ${l.url}`, l.short_url));
    all.reload();
  };
  const change = (l) => {
    const done = () => {
      made.replaceChildren();
      page.say(`The link ${l.code} is changed.`);
      all.reload();
    };
    made.replaceChildren(changing(page, l, done));
    made.querySelector("input:not([disabled])").focus();
  };
  const find = h("div", { class: "card" }, field("Search", wanted));
  return h("div", {}, heading("Links", `Short links of ${session.domain}. The same address gives the same link.`),
    h("div", { class: "grid side wide-left" }, h("div", { class: "stack" }, find, all.element),
      h("div", { class: "stack" }, made, creation(page, created), may("admin") && FILES.map(([name, system]) => file(page, name, system)))));
}

/** What is to be known of a link besides where it leads. */
function status(l) {
  if (l.removed_at) return badge("taken down", "bad");
  if (l.expires_at) return Date.parse(l.expires_at) <= Date.now() ? badge("expired", "warn") : `until ${day(l.expires_at)}`;
  return l.may_change ? badge("may change", "") : "";
}

function creation(page, created) {
  const url = input("link-url", { type: "url", required: true, maxlength: 2048, placeholder: "https://example.com/offers" });
  const code = input("link-code", { maxlength: 64, pattern: "[A-Za-z0-9_\\-]*" });
  const expires = input("link-expires", { type: "datetime-local" });
  const box = check("link-may-change", "The address may change later; browsers do not remember it");
  const mayChange = box.querySelector("input");
  return form(page, {
    id: "link-new", title: "New link", submit: "Shorten", pointers: { "/url": url, "/code": code, "/expires_at": expires, "/may_change": mayChange },
    fields: [field("Address", url), field("Code", code, "Letters, digits, - and _. Left empty: one that is derived from the address."),
      field("Expires", expires, "Left empty: never."), box],
    act: async (element) => {
      const body = { url: url.value.trim() };
      if (code.value) body.code = code.value;
      if (expires.value) body.expires_at = new Date(expires.value).toISOString();
      if (mayChange.checked) body.may_change = true;
      created(await post("/v1/links", body, here()));
      element.reset();
    },
  });
}

/** What can be changed of a link: when it expires, and where it leads if it was made so that it may. */
function changing(page, l, done) {
  const url = input("link-change-url", { type: "url", required: true, maxlength: 2048, value: l.url, disabled: !l.may_change });
  const expires = input("link-change-expires", { type: "datetime-local", value: l.expires_at ? local(l.expires_at) : "" });
  const fixed = "It was made without may_change: browsers may remember where it leads.";
  return form(page, {
    id: "link-change", title: `Change ${l.code}`, submit: "Save", pointers: { "/url": url, "/expires_at": expires },
    fields: [field("Address", url, !l.may_change && fixed), field("Expires", expires, "Left empty: never.")],
    act: async () => {
      const body = { expires_at: expires.value ? new Date(expires.value).toISOString() : null };
      if (l.may_change) body.url = url.value.trim();
      await patch(path("v1", "links", l.code), body, here());
      done();
    },
  });
}

/** A time as a control for it has it, in the browser's zone. */
function local(time) {
  const at = new Date(time);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** The file by which telephones of a system learn which app opens the links. */
function file(page, name, system) {
  const text = h("textarea", { id: `file-${system}`, rows: 8, spellcheck: false, autocomplete: "off" });
  const at = path("v1", "link-files", name);
  const read = async () => {
    try {
      text.value = JSON.stringify(await get(at, here(), page.signal), null, 2);
    } catch (problem) {
      text.value = "";
      if (problem.status !== 404) page.say(problem.message, "bad");
    }
  };
  page.load(read);
  return form(page, {
    id: `file-${system}`.toLowerCase(), title: `App on ${system}`, submit: "Save",
    fields: [field(name, text, "Served by every host of the domain. It is checked as telephones read it; empty: none.")],
    act: async () => {
      if (!text.value.trim()) {
        await del(at, here());
        page.say(`${name} is not served any more.`);
        return;
      }
      let value;
      try {
        value = JSON.parse(text.value);
      } catch {
        throw new Error("This is not JSON.");
      }
      await put(at, value, here());
      page.say(`${name} is served.`);
    },
  });
}
