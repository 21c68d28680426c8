// Shows /openapi.json to people: one line per operation, opened where it is wanted.

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
    METHODS.filter((m) => item[m]).map((method) => ({ path, method, about: item[method], id: item[method].operationId })));
  const parts = (api.tags ?? []).map((tag) => ({ ...tag, routes: routes.filter((r) => r.about.tags?.includes(tag.name)) }));
  at("contents").append(...parts.map((part) => h("a", { href: `#part-${part.name}`, "data-part": part.name },
    h("span", {}, heading(part.name)), h("span", { class: "count" }, part.routes.length))),
  h("a", { href: "#problems" }, "Problem codes"));
  at("doc").replaceChildren(
    h("h1", {}, `${api.info.title} API `, badge(api.info.version)),
    h("div", { class: "lede" }, paragraphs(api.info.description)),
    h("p", { id: "nothing", class: "muted", hidden: true }, "No operation matches."),
    ...parts.map((part) => h("section", { class: "part", id: `part-${part.name}` },
      h("h2", {}, heading(part.name)), h("p", {}, prose(part.description ?? "")),
      h("div", { class: "card routes" }, part.routes.map((route) => section(route, api))))),
    h("section", { class: "part", id: "problems" }, h("h2", {}, "Problem codes"),
      h("p", {}, prose("The values of `code` in a problem. The meaning and the status of a code do not change.")),
      h("div", { class: "card routes" }, folded("codes", [h("span", { class: "name" }, "All codes")], () => problems(api)))));
  const find = at("find");
  find.addEventListener("input", () => narrow(parts, find.value));
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== find) {
      event.preventDefault();
      find.focus();
    }
  });
  addEventListener("hashchange", open);
  open();
}

/** Opens what the address names. */
function open() {
  const id = decodeURIComponent(location.hash.slice(1));
  if (id.startsWith("problem-")) at("codes").open = true;
  const target = at(id);
  if (!target) return;
  if (target.tagName === "DETAILS") target.open = true;
  // What is inside is made when it opens, which is told after this.
  requestAnimationFrame(() => (at(id) ?? target).scrollIntoView());
}

function heading(name) {
  return name[0].toUpperCase() + name.slice(1);
}

function narrow(parts, text) {
  const words = text.trim().toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  for (const part of parts) {
    const shown = part.routes.filter((route) => {
      const about = `${route.method} ${route.path} ${route.id} ${route.about.summary} ${route.about.description ?? ""}`.toLowerCase();
      return (at(route.id).hidden = !words.every((word) => about.includes(word))) === false;
    });
    found += shown.length;
    at(`part-${part.name}`).hidden = shown.length === 0;
    const entry = document.querySelector(`[data-part="${part.name}"]`);
    entry.hidden = shown.length === 0;
    entry.querySelector(".count").textContent = shown.length;
  }
  at("nothing").hidden = found > 0;
}

/** A line that opens. What is inside is made when it is opened for the first time. */
function folded(id, line, inside) {
  const details = h("details", { id, class: "route" }, h("summary", {}, line));
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(h("div", { class: "inside" }, inside()));
  });
  return details;
}

function section(route, api) {
  const { about } = route;
  return folded(route.id, [
    h("span", { class: `method ${route.method}` }, route.method.toUpperCase()),
    h("span", { class: "path" }, route.path),
    h("span", { class: "name" }, about.summary),
  ], () => inside(route, api));
}

function inside(route, api) {
  const { about } = route;
  const body = about.requestBody?.content ?? {};
  const [type] = Object.keys(body);
  return [
    about.description && h("div", { class: "about" }, paragraphs(about.description)),
    h("h4", {}, "Try it"), sample(curl(route)),
    about.parameters?.length > 0 && [h("h4", {}, "Parameters"), h("dl", { class: "members" }, about.parameters.map((p) => parameter(p, api)))],
    type && [h("h4", {}, `Body, ${type}`), members(body[type].schema, api, new Set())],
    h("h4", {}, "Answers"),
    Object.entries(about.responses).map(([status, answer]) => reply(status, answer, api)),
    h("p", { class: "small muted" }, "Link to this: ", h("a", { href: `#${route.id}` }, `#${route.id}`)),
  ];
}

/** A request as one types it. Paste it into a shell that knows CARILLON_KEY. */
function curl({ path, method, about }) {
  const parts = (about.parameters ?? []).filter((p) => p.in === "path");
  const filled = parts.reduce((filled, p) =>
    filled.replace(`{${p.name}}`, encodeURIComponent(p.schema?.examples?.[0] ?? p.name.toUpperCase())), path);
  const lines = [`curl -sS${method === "get" || method === "post" ? "" : ` -X ${method.toUpperCase()}`} "${location.origin}${filled}"`];
  const stream = Object.keys(about.responses["200"]?.content ?? {}).includes("text/event-stream");
  if (stream) lines[0] = lines[0].replace("-sS", "-sSN");
  if (about.security) lines.push(`-H "Authorization: Bearer $CARILLON_KEY"`);
  const [[type, content] = []] = Object.entries(about.requestBody?.content ?? {});
  if (type) {
    const text = typeof content.example === "string" ? content.example.trimEnd() : JSON.stringify(content.example, null, 2);
    lines.push(`-H "Content-Type: ${type}"`, `--data-binary '${text.replaceAll("'", "'\\''")}'`);
  } else if (method === "post") {
    lines[0] = lines[0].replace(" \"", " -X POST \"");
  }
  return lines.join(" \\\n  ");
}

function sample(text) {
  const copy = h("button", { type: "button", class: "copy", onclick: async () => {
    await navigator.clipboard.writeText(text);
    copy.textContent = "Copied";
    setTimeout(() => (copy.textContent = "Copy"), 2000);
  } }, "Copy");
  return h("div", { class: "sample" }, h("pre", { class: "example" }, text), navigator.clipboard && copy);
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
  // A problem is described once, below.
  const seen = inner && (above.has(inner) || inner === api.components.schemas.Problem);
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
