// Small tools for making pages: elements, words for numbers and times, messages.

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

/** A choice among words. */
export function select(id, options, chosen) {
  return h("select", { id, "data-testid": id },
    options.map(([value, text]) => h("option", { value, selected: value === chosen }, text)));
}

export function badge(text, kind) {
  return h("span", { class: `badge ${kind ?? ""}` }, text);
}

export function empty(title, text) {
  return h("div", { class: "empty" }, h("strong", {}, title), text);
}

export function toast(text, kind) {
  const box = h("div", { class: `toast ${kind ?? ""}` }, text);
  document.getElementById("toasts").append(box);
  setTimeout(() => box.remove(), kind === "bad" ? 8000 : 4000);
}

/** Asks before something that cannot be undone. */
export function confirm(title, text, yes) {
  const dialog = document.getElementById("confirm");
  document.getElementById("confirm-title").textContent = title;
  document.getElementById("confirm-text").textContent = text;
  document.getElementById("confirm-yes").textContent = yes;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((done) => {
    dialog.addEventListener("close", () => done(dialog.returnValue === "yes"), { once: true });
  });
}

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** A count: to the last digit up to 99,999, then in thousands and millions. */
export function count(n) {
  return Math.abs(n) < 100_000 ? whole.format(n) : short.format(n);
}

/** A rate or a time, with as many digits as mean something. */
export function measure(n) {
  if (n === 0) return "0";
  return n >= 100 ? count(Math.round(n)) : n >= 10 ? n.toFixed(1) : n.toFixed(2);
}

/** Bytes as [number, unit]. */
export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (n >= 1024 && at < units.length - 1) { n /= 1024; at += 1; }
  return [at === 0 || n >= 100 ? String(Math.round(n)) : n.toFixed(1), units[at]];
}

/** How long, in its two largest units. */
export function duration(ms) {
  const s = Math.floor(ms / 1000);
  const [d, hh, m] = [Math.floor(s / 86400), Math.floor(s / 3600) % 24, Math.floor(s / 60) % 60];
  if (d > 0) return `${d}d ${hh}h`;
  if (hh > 0) return `${hh}h ${m}m`;
  return m > 0 ? `${m}m ${s % 60}s` : `${s}s`;
}

/** A time of day with milliseconds, in the reader's zone. */
export function clock(text) {
  const at = new Date(text);
  const two = (n, width = 2) => String(n).padStart(width, "0");
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${two(at.getMilliseconds(), 3)}`;
}

/** A date and time, in the reader's zone and language. */
export function moment(text) {
  return new Date(text).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

/** A cell with a date; the time of day is in its title. */
export function dayCell(text) {
  const day = new Date(text).toLocaleDateString(undefined, { dateStyle: "medium" });
  return h("td", { class: "when", title: moment(text) }, day);
}
