// Small tools for making pages: elements, controls, messages.

/** An element. Properties that begin with `on` are listeners; `false`, `null` and `undefined` are left out. */
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return element;
}

/** A labelled control. */
export function field(label, control, hint) {
  return h("label", { class: "field", for: control.id },
    h("span", { class: "label" }, label), control, hint && h("span", { class: "hint" }, hint));
}

/** A line of text for names and ids: nothing is completed or corrected. */
export function input(id, props) {
  return h("input", { id, "data-testid": id, autocomplete: "off", autocapitalize: "none", spellcheck: "false", ...props });
}

/** A choice among words. */
export function select(id, options, chosen) {
  return h("select", { id, "data-testid": id },
    options.map(([value, text]) => h("option", { value, selected: value === chosen }, text)));
}

/** A box to tick. */
export function check(id, text, props) {
  return h("label", { class: "check", for: id }, h("input", { id, "data-testid": id, type: "checkbox", ...props }), h("span", {}, text));
}

export function button(text, kind, onclick, props) {
  return h("button", { class: `button ${kind}`, type: "button", onclick, ...props }, text);
}

/** A link to a page of the console. */
export function link(text, ...segments) {
  return h("a", { href: address(...segments) }, text);
}

/** The address of a page of the console. */
export function address(...segments) {
  return `#${segments.map(encodeURIComponent).join("/")}`;
}

export function badge(text, kind) {
  return h("span", { class: `badge ${kind ?? ""}` }, text);
}

/** What stands where there is nothing. */
export function empty(title, text) {
  return h("div", { class: "empty" }, h("strong", {}, title), text);
}

/** Names with their values. */
export function facts(entries) {
  return h("dl", { class: "facts" }, entries.filter(Boolean).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

export function toast(text, kind) {
  const box = h("div", { class: `toast ${kind ?? ""}` }, text);
  document.getElementById("toasts").append(box);
  setTimeout(() => box.remove(), kind === "bad" ? 8000 : 4000);
}

/** Takes all messages away: they are about the page that was left. */
export function hush() {
  document.getElementById("toasts").replaceChildren();
}

/** Asks before something that cannot be undone; with `typed`, only who types that word may say yes. */
export function confirm(title, text, yes, typed) {
  const at = (id) => document.getElementById(id);
  const dialog = at("confirm");
  at("confirm-title").textContent = title;
  at("confirm-text").textContent = text;
  at("confirm-yes").textContent = yes;
  at("confirm-field").hidden = !typed;
  at("confirm-label").textContent = `Type ${typed} to confirm`;
  at("confirm-typed").value = "";
  const allow = () => { at("confirm-yes").disabled = Boolean(typed) && at("confirm-typed").value.trim() !== typed; };
  at("confirm-typed").oninput = allow;
  allow();
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((done) => {
    dialog.addEventListener("close", () => done(dialog.returnValue === "yes"), { once: true });
  });
}
