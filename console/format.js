// Numbers, sizes and times as people read them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** A count: to the last digit up to 99,999, then in thousands and millions. */
export function count(n) {
  return Math.abs(n) < 100_000 ? whole.format(n) : short.format(n);
}

/** A count with its noun: "1 session", "3 sessions". */
export function many(n, noun) {
  return `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
}

/** A rate or a time, with as many digits as mean something. */
export function measure(n) {
  if (Number.isInteger(n) && n < 100) return String(n);
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

const two = (n, width = 2) => String(n).padStart(width, "0");

/** A time of day, in the reader's zone. */
export function clock(time) {
  const at = new Date(time);
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** A time of day with milliseconds, in the reader's zone. */
export function precise(time) {
  return `${clock(time)}.${two(new Date(time).getMilliseconds(), 3)}`;
}

/** A date and time, in the reader's zone and language; as all times of the console, by a clock of 24 hours. */
export function moment(time) {
  return new Date(time).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short", hourCycle: "h23" });
}

/** A date and time to the millisecond: the time of day alone when it is of today. */
export function exact(time) {
  const at = new Date(time);
  const today = at.toDateString() === new Date().toDateString();
  return today ? precise(at) : `${at.toLocaleDateString(undefined, { dateStyle: "medium" })}, ${precise(at)}`;
}

/** A date, in the reader's zone and language. */
export function day(time) {
  return new Date(time).toLocaleDateString(undefined, { dateStyle: "medium" });
}
