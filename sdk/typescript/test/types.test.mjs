// The types beside the node's OpenAPI document.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { CARILLON_URL } from "./environment.mjs";

const source = (file) => readFileSync(new URL(`../src/${file}`, import.meta.url), "utf8");
const openapi = await (await fetch(`${CARILLON_URL}/openapi.json`)).json();
const TAGS = ["notifications", "topics", "devices", "links", "keys"];
// For operators, not for senders.
const LEFT_OUT = ["getLinkFile", "putLinkFile", "deleteLinkFile"];
// Parts that are options of a method are no types of the document.
const OWN = ["NotificationOptions", "LinkOptions"];

/** The members of a schema, those of its parts among them: those that are always there, and all. */
function members(schema) {
  if (schema.$ref) return members(openapi.components.schemas[schema.$ref.split("/").at(-1)]);
  const found = { required: new Set(schema.required), all: new Set(Object.keys(schema.properties ?? {})) };
  for (const part of schema.allOf ?? []) {
    // One of them may be `null`: then nothing in it is always there.
    const choices = part.oneOf ?? [part];
    for (const choice of choices.filter(({ type }) => type !== "null").map(members)) {
      for (const name of choice.all) found.all.add(name);
      if (choices.length === 1) for (const name of choice.required) found.required.add(name);
    }
  }
  return found;
}

/** The interfaces of types.ts by name. */
function interfaces() {
  const found = {};
  for (const [, name, base, body] of source("types.ts").matchAll(/^export interface (\w+)(?: extends (\w+))? \{\n(.*?)^\}/gms)) {
    const own = [...body.matchAll(/^  (\w+)(\??):/gm)];
    found[name] = {
      required: new Set([...(found[base]?.required ?? []), ...own.filter(([, , mark]) => !mark).map(([, member]) => member)]),
      all: new Set([...(found[base]?.all ?? []), ...own.map(([, member]) => member)]),
    };
  }
  return found;
}

test("every operation is in the document, and the other way round", () => {
  const used = new Set([...(source("client.ts") + source("events.ts")).matchAll(/"((?:GET|POST|PUT|PATCH|DELETE) \/[^"]*)"/g)].map(([, one]) => one));
  const wanted = Object.entries(openapi.paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([method, { tags, operationId }]) => method !== "parameters" && TAGS.includes(tags[0]) && !LEFT_OUT.includes(operationId))
      .map(([method]) => `${method.toUpperCase()} ${path}`),
  );
  assert.deepEqual([...used].sort(), wanted.sort());
});

test("types are those of the document", () => {
  const found = Object.entries(interfaces()).filter(([name]) => !OWN.includes(name));
  assert.ok(found.length > 20);
  for (const [name, type] of found) assert.deepEqual(type, members(openapi.components.schemas[name]), name);
  const words = [...source("types.ts").matchAll(/^export type (\w+) =((?:\s*\|?\s*"[\w-]+")+);/gm)];
  assert.ok(words.length > 10);
  for (const [, name, values] of words) {
    const all = [...values.matchAll(/"([\w-]+)"/g)].map(([, value]) => value);
    assert.deepEqual(all, openapi.components.schemas[name].enum, name);
  }
});
