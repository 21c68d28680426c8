// Line charts of the last ten minutes, drawn as SVG.

import { h } from "./dom.js";
import { clock, duration } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 600;
const HEIGHT = 150;
/** What a chart shows: ten minutes. */
export const SPAN_MS = 600_000;

export class Chart {
  /** `series` are [name, value of a sample]; `format` writes a value with its unit; `pointed` is told the time pointed at, or null; `isWhole` of counts. */
  constructor(id, title, series, format, pointed, isWhole) {
    Object.assign(this, { series, format, isWhole, samples: [], now: 0, time: null });
    this.lines = series.map((_, i) => shape("path", `line series-${i + 1}`));
    this.areas = series.map((_, i) => shape("path", `area series-${i + 1}`));
    this.dots = series.map((_, i) => shape("path", `dot series-${i + 1}`));
    this.cursor = shape("line", "cursor");
    this.values = series.map(() => h("b", {}, "–"));
    const svg = shape("svg", "");
    svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("aria-hidden", "true");
    svg.append(...[0, 0.5, 1].map(gridline), ...this.areas, ...this.lines, ...this.dots, this.cursor);
    this.top = h("span", { class: "scale top" });
    this.middle = h("span", { class: "scale middle" });
    this.foot = h("span", {});
    const time = (event) => {
      const box = plot.getBoundingClientRect();
      return this.now - (1 - (event.clientX - box.left) / box.width) * SPAN_MS;
    };
    const plot = h("div", { class: "plot", onpointermove: (e) => pointed(time(e)), onpointerleave: () => pointed(null) }, svg, this.top, this.middle);
    this.element = h("figure", { class: "card chart", "aria-label": `${title}, the last ten minutes`, "data-testid": `chart-${id}` },
      h("div", { class: "chart-head" }, h("h2", {}, title),
        h("div", { class: "legend" }, series.map(([name], i) => h("span", { class: `series-${i + 1}` }, `${name} `, this.values[i])))),
      plot,
      h("div", { class: "chart-foot" }, h("span", {}, "10 minutes ago"), this.foot, h("span", {}, "now")));
  }

  /** Draws samples, in the order of their time `t`; the right end is `now`, and a hole wider than `gap` is left open. */
  draw(samples, now, gap) {
    Object.assign(this, { samples, now });
    const values = this.series.flatMap(([, of]) => samples.map(of)).filter((v) => v !== null);
    const max = (this.isWhole ? evenUp : roundUp)(Math.max(...values, 0));
    this.top.textContent = this.format(max);
    this.middle.textContent = this.format(max / 2);
    const x = (t) => (WIDTH - ((now - t) * WIDTH) / SPAN_MS).toFixed(1);
    const y = (v) => (HEIGHT * (1 - v / max)).toFixed(1);
    this.series.forEach(([, of], s) => {
      const runs = pieces(samples, of, gap);
      const text = (run) => run.map(([t, v], n) => `${n ? "L" : "M"}${x(t)} ${y(v)}`).join("");
      const floor = (run) => `L${x(run.at(-1)[0])} ${HEIGHT}L${x(run[0][0])} ${HEIGHT}Z`;
      this.lines[s].setAttribute("d", runs.map(text).join(""));
      // A point alone is a dot: the round ends of a line of no length.
      this.dots[s].setAttribute("d", runs.filter((run) => run.length === 1).map((run) => `${text(run)}h0`).join(""));
      this.areas[s].setAttribute("d", runs.map((run) => text(run) + floor(run)).join(""));
    });
    this.point(this.time);
  }

  /** Shows the values at a time, or the newest. */
  point(time) {
    this.time = time;
    const shown = time === null ? this.samples.at(-1) : nearest(this.samples, time);
    if (!shown) return;
    this.series.forEach(([, of], s) => {
      const v = of(shown);
      this.values[s].textContent = v === null ? "–" : this.format(v);
    });
    const x = WIDTH - ((this.now - shown.t) * WIDTH) / SPAN_MS;
    for (const [name, value] of [["x1", x], ["x2", x], ["y1", 0], ["y2", time === null ? 0 : HEIGHT]]) this.cursor.setAttribute(name, value);
    this.foot.textContent = time === null ? "" : `${clock(shown.t)}, ${duration(Math.max(0, this.now - shown.t))} ago`;
  }
}

function nearest(samples, time) {
  return samples.reduce((best, s) => (!best || Math.abs(s.t - time) < Math.abs(best.t - time) ? s : best), null);
}

/** The stretches without holes, as [time, value]. */
function pieces(samples, of, gap) {
  const runs = [];
  let last = null;
  for (const sample of samples) {
    const value = of(sample);
    if (value === null) { last = null; continue; }
    if (last === null || sample.t - last > gap) runs.push([]);
    runs.at(-1).push([sample.t, value]);
    last = sample.t;
  }
  return runs;
}

/** The next of 1, 2, 5, 10, 20, 50… so that the scale does not move with each sample. */
function roundUp(max) {
  if (max <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(max));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= max * 1.02) ?? 20 * power;
}

/** The same for counts: an even number, so that half of it is whole, too. */
function evenUp(max) {
  const power = 10 ** Math.floor(Math.log10(Math.max(max, 1)));
  return [2, 4, 6, 10].map((n) => n * power).find((n) => n >= max * 1.02) ?? 20 * power;
}

function shape(tag, cls) {
  const element = document.createElementNS(SVG, tag);
  if (cls) element.setAttribute("class", cls);
  return element;
}

function gridline(at) {
  const line = shape("line", "gridline");
  for (const [name, value] of [["x1", 0], ["x2", WIDTH], ["y1", at * HEIGHT], ["y2", at * HEIGHT]]) line.setAttribute(name, value);
  return line;
}
