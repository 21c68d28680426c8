// Line charts of the last minutes, drawn as SVG.

import { h } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 600;
const HEIGHT = 150;
/** Samples a chart shows, one a second. */
const SAMPLES = 180;

export class Chart {
  /** `series` are names; `format` writes a value with its unit. */
  constructor(title, series, format) {
    this.format = format;
    this.samples = [];
    this.hovered = null;
    this.lines = series.map((_, i) => shape("path", `line series-${i + 1}`));
    this.areas = series.map((_, i) => shape("path", `area series-${i + 1}`));
    this.cursor = shape("line", "cursor");
    this.values = series.map(() => h("b", {}, "–"));
    const svg = shape("svg", "");
    svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("aria-hidden", "true");
    svg.append(...[0, 0.5, 1].map(gridline), ...this.areas, ...this.lines, this.cursor);
    this.top = h("span", { class: "scale top" });
    this.middle = h("span", { class: "scale middle" });
    this.foot = h("span", {});
    const plot = h("div", { class: "plot", onpointermove: (e) => this.hover(e, plot), onpointerleave: () => this.leave() }, svg, this.top, this.middle);
    this.element = h("figure", { class: "card", "aria-label": title },
      h("div", { class: "chart-head" }, h("h2", {}, title),
        h("div", { class: "legend" }, series.map((name, i) => h("span", { class: `series-${i + 1}` }, `${name} `, this.values[i])))),
      plot,
      h("div", { class: "chart-foot" }, h("span", {}, `${SAMPLES / 60} minutes ago`), this.foot, h("span", {}, "now")));
  }

  /** Adds the values of a second; `null` leaves a gap. */
  push(...values) {
    this.samples.push(values);
    if (this.samples.length > SAMPLES) this.samples.shift();
    this.draw();
  }

  draw() {
    const seen = this.samples.flat().filter((v) => v !== null);
    const max = roundUp(Math.max(...seen, 0));
    this.top.textContent = this.format(max);
    this.middle.textContent = this.format(max / 2);
    const x = (i) => WIDTH - (this.samples.length - 1 - i) * (WIDTH / (SAMPLES - 1));
    this.lines.forEach((line, s) => {
      const runs = pieces(this.samples.map((values) => values[s]));
      const text = (run) => run.map(([i, v], n) => `${n ? "L" : "M"}${x(i).toFixed(1)} ${(HEIGHT * (1 - v / max)).toFixed(1)}`).join("");
      line.setAttribute("d", runs.map(text).join(""));
      const floor = (run) => `L${x(run.at(-1)[0]).toFixed(1)} ${HEIGHT}L${x(run[0][0]).toFixed(1)} ${HEIGHT}Z`;
      this.areas[s].setAttribute("d", runs.map((run) => text(run) + floor(run)).join(""));
    });
    this.read();
  }

  hover(event, plot) {
    const box = plot.getBoundingClientRect();
    const age = Math.round((1 - (event.clientX - box.left) / box.width) * (SAMPLES - 1));
    this.hovered = age >= 0 && age < this.samples.length ? age : null;
    const x = WIDTH - age * (WIDTH / (SAMPLES - 1));
    for (const [name, value] of [["x1", x], ["x2", x], ["y1", 0], ["y2", this.hovered === null ? 0 : HEIGHT]]) this.cursor.setAttribute(name, value);
    this.read();
  }

  leave() {
    this.hovered = null;
    this.cursor.setAttribute("y2", 0);
    this.read();
  }

  /** Writes the hovered values, or the newest. */
  read() {
    const values = this.samples.at(-1 - (this.hovered ?? 0));
    if (!values) return;
    values.forEach((v, s) => { this.values[s].textContent = v === null ? "–" : this.format(v); });
    this.foot.textContent = this.hovered ? `${this.hovered} s ago` : "";
  }
}

/** The stretches without gaps, as [index, value]. */
function pieces(values) {
  const runs = [];
  values.forEach((v, i) => {
    if (v === null) return;
    if (i === 0 || values[i - 1] === null) runs.push([]);
    runs.at(-1).push([i, v]);
  });
  return runs;
}

/** The next of 1, 2, 5, 10, 20, 50… so that the scale does not move with each sample. */
function roundUp(max) {
  if (max <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(max));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= max * 1.02) ?? 20 * power;
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
