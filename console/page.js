// What pages are made of: a heading, lists, forms, secrets, and a life that ends when the page is left.

import { get, node } from "./api.js";
import { button, empty, h, toast } from "./dom.js";

/** A page while it is shown. `params` are what follows its name in the address. */
export class Page {
  constructor({ params, signal }) {
    this.params = params;
    this.signal = signal;
  }

  /** Reads from the API; never answers once the page is left. */
  async get(path, query) {
    const left = () => new Promise(() => {});
    try {
      const answer = await get(path, query, this.signal);
      return this.signal.aborted ? left() : answer;
    } catch (problem) {
      if (this.signal.aborted) return left();
      throw problem;
    }
  }

  /** Tells the reader something, unless the page is left. */
  say(text, kind) {
    if (!this.signal.aborted) toast(text, kind);
  }

  /** Does what a button says, and tells what went wrong. */
  async attempt(act) {
    try {
      return await act();
    } catch (problem) {
      this.say(problem.message, "bad");
      return undefined;
    }
  }

  /** Calls `load` now, and again when the node is back. */
  load(load) {
    node.addEventListener("change", () => { if (!node.lost) load(); }, { signal: this.signal });
    return load();
  }

  /** Calls `act` now and then again and again, `ms` after it is done, until the page is left. */
  async repeat(ms, act) {
    while (!this.signal.aborted) {
      await act();
      await new Promise((done) => setTimeout(done, ms));
    }
  }
}

/** A heading, one sentence on what the page is for, and what may be done on it. */
export function heading(title, lead, ...actions) {
  return h("div", { class: "page-head" },
    h("div", { class: "page-title" }, h("h1", {}, title), lead && h("p", { class: "muted" }, lead)),
    actions.length > 0 && h("div", { class: "row" }, actions));
}

/** A card with a heading, and what is done to the whole of it beside that. */
export function card(title, ...children) {
  return h("section", { class: "card" }, h("h2", {}, title), children);
}

/** A table. Rows come from `row`. */
export function table(id, columns, rows) {
  const head = columns.map((name) => h("th", { scope: "col" }, name || h("span", { class: "visually-hidden" }, "Actions")));
  return h("div", { class: "table-wrap" }, h("table", { "data-testid": id }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows)));
}

/** A row of a table; a cell is its content, or [class, content, title]. Narrow pages show each under its column's name. */
export function row(columns, props, ...cells) {
  return h("tr", props, cells.map((cell, i) => {
    const [cls, content, title] = Array.isArray(cell) ? cell : ["", cell];
    return h("td", { class: cls, title, "data-label": columns[i] }, h("div", {}, content));
  }));
}

/** A card with a table that is read in pages. `read(after)` gives `{ rows, next }`, `line` makes a row of one. */
export function listing(page, { id, title, columns, read, line, none, note }) {
  const where = h("div", { "aria-busy": "true" }, h("p", { class: "loading" }, "Loading…"));
  const foot = h("div", { class: "card-foot" });
  let shown = null;

  async function load(after) {
    let answer;
    try {
      answer = await page.get(...read(after));
    } catch (problem) {
      if (after) return page.say(problem.message, "bad");
      foot.replaceChildren();
      return where.replaceChildren(failure(problem, () => load()));
    }
    const items = answer[id] ?? [];
    where.removeAttribute("aria-busy");
    if (!after) shown = table(id, columns, []);
    shown.querySelector("tbody").append(...items.map(line));
    // A page may be empty and not the last.
    where.replaceChildren(shown.querySelector("tbody").children.length ? shown : empty(...none));
    foot.replaceChildren(...[
      answer.next && button("Show more", "", () => load(answer.next), { "data-testid": `${id}-more` }),
      note?.(items, answer) && h("span", { class: "muted small" }, note(items, answer)),
    ].filter(Boolean));
  }

  page.load(() => load());
  return { element: h("section", { class: "card" }, title && h("h2", {}, title), where, foot), reload: () => load() };
}

/** What could not be read, and a way to try again. */
export function failure(problem, again) {
  return h("div", { class: "empty", role: "alert" }, h("p", { class: "error-text" }, problem.message), again && button("Try again", "quiet", again));
}

/** A form in a card: tells what went wrong beside its button, and marks the control that it is about. */
export function form(page, { id, title, submit, fields, pointers, beside, act }) {
  const error = h("p", { class: "error-text", role: "alert", id: `${id}-error` });
  const done = h("button", { id: `${id}-submit`, class: "button primary", "data-testid": `${id}-submit`, type: "submit" }, submit);
  const mark = (problem) => {
    for (const control of Object.values(pointers ?? {})) control.removeAttribute("aria-invalid");
    const [, about] = Object.entries(pointers ?? {}).find(([pointer]) => problem?.pointer === pointer || problem?.pointer?.startsWith(`${pointer}/`)) ?? [];
    about?.setAttribute("aria-invalid", "true");
  };
  const onsubmit = async (event) => {
    event.preventDefault();
    error.textContent = "";
    mark(null);
    done.disabled = true;
    try {
      await act(event.target);
    } catch (problem) {
      error.textContent = problem.message;
      mark(problem);
    } finally {
      done.disabled = false;
    }
  };
  return h("form", { id: `${id}-form`, class: "card form", onsubmit }, title && h("h2", {}, title), fields, error,
    h("div", { class: beside ? "row between" : "row end" }, beside, done));
}

/** Text that is shown once and can be copied. */
export function secret(page, title, text, value) {
  const copy = () => navigator.clipboard?.writeText(value).then(() => page.say("Copied."), () => page.say("The browser did not allow copying.", "bad"));
  return h("section", { class: "secret", "data-testid": "secret", role: "status" }, h("h2", {}, title), h("p", { class: "small" }, text),
    h("code", {}, value), h("div", { class: "row end" }, button("Copy", "", copy)));
}

/** What a payload's text says: JSON, or an XML element. */
export function payload(text) {
  const trimmed = text.trim();
  if (trimmed.startsWith("<")) return { payload_xml: trimmed };
  try {
    return { payload: JSON.parse(trimmed) };
  } catch {
    throw Object.assign(new Error("The payload is neither JSON nor an XML element."), { pointer: "/payload" });
  }
}
