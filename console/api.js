// The API as the console speaks to it: with the key of this tab, in the chosen domain.

const KEY = "carillon.key";
const DOMAIN = "carillon.domain";
/** A node that has not answered by then is taken for unreachable. */
const PATIENCE_MS = 8000;

/** An answer that is a problem (RFC 9457), or no answer at all. */
export class Problem extends Error {
  constructor(body, status) {
    super(body.detail || body.title || "The request failed.");
    this.code = body.code ?? "unreachable";
    this.status = status;
    this.pointer = body.pointer;
  }
}

export const session = {
  key: sessionStorage.getItem(KEY),
  own: null,
  domain: "",
  /** The domains that the key reaches. */
  domains: [],
  /** Called when the node no longer knows the key. */
  lost: () => {},
};

/** Whether the node answers: `lost` is when it stopped to. Says `change` when that changes. */
export const node = Object.assign(new EventTarget(), { lost: null });

export function remember(key) {
  session.key = key;
  if (key) sessionStorage.setItem(KEY, key);
  else sessionStorage.removeItem(KEY);
}

/** The domain that was chosen in this tab. */
export const chosenDomain = () => sessionStorage.getItem(DOMAIN);

export function choose(domain) {
  session.domain = domain;
  sessionStorage.setItem(DOMAIN, domain);
}

/** Whether the key in hand may do this. */
export function may(scope) {
  const scopes = session.own?.scopes ?? [];
  return scopes.includes(scope) || scopes.includes("admin");
}

export const get = (path, query, signal) => request("GET", path, { query, signal });
export const post = (path, body, query) => request("POST", path, { body, query });
export const put = (path, body, query) => request("PUT", path, { body, query });
/** Changes what is named and leaves the rest as it is (RFC 7396). */
export const patch = (path, body, query) => request("PATCH", path, { body, query });
export const del = (path, query) => request("DELETE", path, { query });

/** The path of segments, each percent-encoded. */
export function path(...segments) {
  return "/" + segments.map(encodeURIComponent).join("/");
}

/** The query of a request in the chosen domain. */
export function here(query) {
  return session.domain ? { domain: session.domain, ...query } : { ...query };
}

/** Asks whether the node is there, which needs no key. */
export async function probe() {
  const late = AbortSignal.timeout(PATIENCE_MS);
  await send("GET", "/healthz", { signal: late, late }).catch(() => {});
}

async function request(method, where, { query, body, signal }) {
  const headers = {};
  if (body !== undefined) headers["Content-Type"] = method === "PATCH" ? "application/merge-patch+json" : "application/json";
  const late = AbortSignal.timeout(PATIENCE_MS);
  const response = await send(method, where, {
    query, headers, late, body: body === undefined ? undefined : JSON.stringify(body), signal: signal ? AbortSignal.any([signal, late]) : late,
  });
  return response.status === 204 ? null : response.json();
}

async function send(method, where, { query, headers, body, signal, late }) {
  const search = new URLSearchParams(Object.entries(query ?? {}).filter(([, v]) => v !== undefined && v !== ""));
  const url = search.size > 0 ? `${where}?${search}` : where;
  let response;
  try {
    response = await fetch(url, { method, headers: { ...headers, Authorization: `Bearer ${session.key}` }, body, signal, cache: "no-store" });
  } catch (error) {
    if (signal?.aborted && !late?.aborted) throw error;
    answered(false);
    throw new Problem({ detail: late?.aborted ? "The node does not answer." : "The node cannot be reached." }, 0);
  }
  if (response.ok) {
    answered(true);
    return response;
  }
  const problem = new Problem(await response.json().catch(() => ({ title: `The request failed: ${response.status} ${response.statusText}` })), response.status);
  // A gateway before the node answers for it when it is gone, without a problem's code.
  answered(problem.code !== "unreachable" || problem.status < 502);
  if (response.status === 401) session.lost(problem);
  throw problem;
}

function answered(yes) {
  if (yes === (node.lost === null)) return;
  node.lost = yes ? null : new Date();
  node.dispatchEvent(new Event("change"));
}

/** Follows receipts until the signal; goes on where it was when the stream breaks. `opened` is told whether it is open. */
export async function follow(query, { signal, event, opened }) {
  let pause = 500, last;
  const seen = (id) => { last = id; };
  while (!signal.aborted) {
    try {
      const headers = { Accept: "text/event-stream", ...(last && { "Last-Event-ID": last }) };
      const response = await send("GET", "/v1/events", { query, headers, signal });
      opened(true);
      pause = 500;
      await read(response.body, event, seen);
    } catch (error) {
      if (signal.aborted) return;
      if (error.status === 401 || error.status === 403) { opened(false); return; }
    }
    opened(false);
    await new Promise((done) => setTimeout(done, pause));
    pause = Math.min(pause * 2, 8000);
  }
}

/** Reads Server-Sent Events (HTML §9.2) from a body. */
async function read(body, event, seen) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const frames = (rest + value).split("\n\n");
    rest = frames.pop();
    for (const frame of frames) {
      const lines = frame.split("\n");
      const member = (name) => lines.filter((l) => l.startsWith(`${name}:`)).map((l) => l.slice(name.length + 1).trim()).join("\n");
      if (member("id")) seen(member("id"));
      if (member("data")) event(member("event") || "message", JSON.parse(member("data")));
    }
  }
}
