// Shows /openapi.json to people.

import { badge, empty, h } from "./dom.js";

const METHODS = ["get", "post", "put", "delete"];
const at = (id) => document.getElementById(id);

try {
  const response = await fetch("/openapi.json");
  render(await response.json());
} catch {
  at("doc").replaceChildren(empty("The document could not be read", "Is the node running?"));
}

function render(api) {
  const routes = Object.entries(api.paths).flatMap(([path, item]) =>
    METHODS.filter((m) => item[m]).map((method) => ({ path, method, about: item[method], id: `${method}${path}` })));
  const parts = (api.tags ?? []).map((tag) => ({ ...tag, routes: routes.filter((r) => r.about.tags?.includes(tag.name)) }));
  at("contents").append(...parts.flatMap((part) => [h("h2", {}, heading(part.name)), ...part.routes.map(entry)]),
    h("h2", {}, "Errors"), h("a", { href: "#problems" }, "Problem codes"));
  at("doc").replaceChildren(
    h("h1", {}, `${api.info.title} API `, badge(api.info.version)),
    h("div", { class: "lede" }, paragraphs(api.info.description)),
    ...parts.flatMap((part) => [
      h("div", { class: "part" }, h("h2", {}, heading(part.name)), h("p", {}, prose(part.description ?? ""))),
      ...part.routes.map((route) => section(route, api)),
    ]),
    h("section", { id: "problems" }, h("div", { class: "part" }, h("h2", {}, "Problem codes"),
      h("p", {}, prose("What the member `code` of a problem says. A code keeps its meaning and its status."))),
      h("div", { class: "card" }, problems(api))));
  at("find").addEventListener("input", (event) => narrow(routes, event.target.value.trim().toLowerCase()));
  if (location.hash) at(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
}

function heading(name) {
  return name[0].toUpperCase() + name.slice(1);
}

function entry(route) {
  const short = { delete: "del" }[route.method] ?? route.method;
  return h("a", { href: `#${encodeURIComponent(route.id)}`, "data-route": route.id }, h("span", { class: `method ${route.method}` }, short.toUpperCase()), route.about.summary);
}

function narrow(routes, words) {
  for (const route of routes) {
    const text = `${route.method} ${route.path} ${route.about.summary} ${route.about.description ?? ""}`.toLowerCase();
    const hidden = !words.split(/\s+/).every((word) => text.includes(word));
    at(route.id).hidden = hidden;
    document.querySelector(`[data-route="${CSS.escape(route.id)}"]`).hidden = hidden;
  }
}

function section(route, api) {
  const { about } = route;
  const body = about.requestBody?.content ?? {};
  const [type] = Object.keys(body);
  return h("section", { class: "card route", id: route.id },
    h("h3", {}, about.summary),
    h("div", { class: "call" }, h("span", { class: `method ${route.method}` }, route.method.toUpperCase()), route.path),
    about.description && h("div", { class: "about" }, paragraphs(about.description)),
    about.parameters?.length > 0 && [h("h4", {}, "Parameters"), h("dl", { class: "members" }, about.parameters.map((p) => parameter(p, api)))],
    type && [h("h4", {}, `Body, ${type}`), members(body[type].schema, api, new Set())],
    h("h4", {}, "Answers"),
    Object.entries(about.responses).map(([status, answer]) => reply(status, answer, api)));
}

function parameter(p, api) {
  return member(p.name, p.schema ?? {}, p.required, p.description, api, new Set(), p.in);
}

function reply(status, answer, api) {
  const [[type, { schema }] = [null, {}]] = Object.entries(answer.content ?? {});
  if (status === "default") {
    return h("div", { class: "answer" }, badge("else", "bad"), h("span", {}, "A problem; see ", h("a", { href: "#problems" }, "problem codes"), "."));
  }
  return [
    h("div", { class: "answer" }, badge(status, "good"), h("span", {}, answer.description, type && type !== "application/json" ? ` (${type})` : "")),
    schema && members(schema, api, new Set()),
  ];
}

/** The members of an object's schema; nothing for a plain value. */
function members(schema, api, above) {
  const { properties, required } = flatten(schema, api);
  if (Object.keys(properties).length === 0) return null;
  return h("dl", { class: "members" }, Object.entries(properties).map(([name, inner]) =>
    member(name, inner, required.has(name), describe(inner, api), api, above)));
}

/** What a member says of itself, or one of the schemas it is made of. */
function describe(schema, api) {
  const parts = [schema, ...(schema.oneOf ?? []), ...(schema.allOf ?? [])];
  return parts.map((part) => part.description).find(Boolean) ?? resolve(schema, api).description;
}

function member(name, schema, required, description, api, above, place) {
  const inner = objectOf(schema, api);
  const seen = inner && above.has(inner);
  return h("div", {},
    h("dt", {}, name, place && h("small", {}, place)),
    h("dd", {}, h("span", { class: "type" }, words(schema, api)), required ? h("span", { class: "must" }, " required") : "",
      description && h("div", {}, paragraphs(description))),
    inner && !seen && members(inner, api, new Set([...above, inner])));
}

/** An object's members with those of the schemas it is made of. */
function flatten(schema, api) {
  const whole = resolve(schema, api);
  const all = { properties: {}, required: new Set() };
  const parts = [whole, ...(whole.allOf ?? []), ...(whole.oneOf ?? []).filter((s) => s.type !== "null")];
  for (const part of parts) {
    const known = part === whole ? whole : flattenOnce(part, api);
    Object.assign(all.properties, known.properties);
    for (const name of known.required ?? []) all.required.add(name);
  }
  return all;
}

function flattenOnce(part, api) {
  const inner = flatten(part, api);
  return { properties: inner.properties, required: [...inner.required] };
}

function resolve(schema, api) {
  return schema?.$ref ? api.components.schemas[schema.$ref.split("/").at(-1)] ?? {} : schema ?? {};
}

/** The schema of the object that a member is, or has in a list. */
function objectOf(schema, api) {
  const whole = resolve(schema, api);
  if (whole.type === "array") return objectOf(whole.items, api);
  const one = (whole.oneOf ?? []).find((s) => s.type !== "null" && objectOf(s, api));
  if (one) return objectOf(one, api);
  return whole.properties || whole.allOf ? whole : null;
}

/** What a value is, in words. */
function words(schema, api) {
  const whole = resolve(schema, api);
  if (whole.enum) return whole.enum.length > 12 ? "one of the codes below" : whole.enum.map((w) => `“${w}”`).join(" or ");
  if (whole.oneOf) return [...new Set(whole.oneOf.filter((s) => s.type !== "null").map((s) => words(s, api)))].join(" or ");
  if (whole.type === "array") return `list of ${words(whole.items, api)}`;
  const type = [whole.type ?? (whole.properties || whole.allOf ? "object" : "any JSON")].flat().filter((t) => t !== "null").join(" or ");
  const bounds = [
    whole.format === "date-time" ? "RFC 3339 time" : null,
    whole.minimum !== undefined && whole.maximum !== undefined ? `${whole.minimum} to ${whole.maximum}` : null,
    whole.maxLength !== undefined ? `at most ${whole.maxLength} bytes` : null,
    whole.default !== undefined && whole.default !== "" ? `by default ${JSON.stringify(whole.default)}` : null,
  ].filter(Boolean);
  return bounds.length ? `${type}, ${bounds.join(", ")}` : type;
}

/** The codes stand in the description of the member `code`, one a line. */
function problems(api) {
  const code = api.components.schemas.Problem.properties.code;
  const lines = code.description.split("\n").filter((line) => line.startsWith("- "));
  return h("dl", { class: "members" }, lines.map((line) => {
    const [, name, status, meaning] = line.match(/^- `([^`]+)` \((\d+)\): (.*)$/) ?? [];
    return h("div", { id: `problem-${name}` }, h("dt", {}, name, h("small", {}, status)), h("dd", {}, prose(meaning ?? line)));
  }));
}

function paragraphs(text) {
  return text.split(/\n\s*\n/).map((p) => h("p", {}, prose(p.trim())));
}

/** Text with `code` in it. */
function prose(text) {
  return text.split(/(`[^`]+`)/).map((piece) => (piece.startsWith("`") ? h("code", {}, piece.slice(1, -1)) : piece));
}
