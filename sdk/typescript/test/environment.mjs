// Where the node of the test run is, the proxy before it that fails when told to, and a receiver of webhooks.

import { createServer } from "node:http";
import { once } from "node:events";

import { Client } from "@carillon-im/sender";

export const { CARILLON_URL, CARILLON_KEY, CARILLON_ADMIN_KEY, CARILLON_FAULTY } = process.env;
export const FAST = { firstMs: 10, longestMs: 20 };
const RUN = Date.now().toString(36);
let numbers = 0;

/** A name that no other test uses. */
export const unique = (stem) => `${stem}-ts-${RUN}-${++numbers}`;

/** A client, which meets faults on its way; `seen` says what the proxy saw of it. */
export function connect(faults = [], options = {}) {
  const url = faults.length ? `${CARILLON_FAULTY}/${faults.join(",")}~${unique("ts")}` : CARILLON_URL;
  const client = new Client({ url, key: CARILLON_KEY, retry: FAST, ...options });
  return Object.assign(client, { seen: async () => (await fetch(`${url}/seen`)).json() });
}

/** All that an iterator gives. */
export async function all(values) {
  const found = [];
  for await (const value of values) found.push(value);
  return found;
}

/** The first value that is wanted. */
export async function first(values, wanted) {
  for await (const value of values) if (wanted(value)) return value;
  throw new Error("none was wanted");
}

/** The next request that comes to a webhook, and its secret. */
export async function webhook(cause) {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${server.address().port}/receipts`;
  const made = await admin("POST", "/v1/webhooks", { url, states: ["cancelled"] });
  const came = once(server, "request");
  try {
    await cause();
    const [request, response] = await came;
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    response.writeHead(204).end();
    return { secret: made.secret, headers: request.headers, body: Buffer.concat(pieces) };
  } finally {
    await admin("DELETE", `/v1/webhooks/${made.id}`);
    server.close();
    server.closeAllConnections();
  }
}

async function admin(method, path, body) {
  const headers = { authorization: `Bearer ${CARILLON_ADMIN_KEY}`, "content-type": "application/json" };
  const response = await fetch(CARILLON_URL + path, { method, headers, body: body && JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  return text && JSON.parse(text);
}
