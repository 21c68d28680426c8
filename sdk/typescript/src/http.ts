import { ApiError, NoAnswer } from "./errors.js";
import { type Retry, isWorthRepeating, pause, waitMs } from "./retry.js";
import type { Problem } from "./types.js";

/** What a client is made with. */
export interface Settings {
  url: string;
  key: string;
  domain: string | undefined;
  timeoutMs: number;
  retry: Retry;
  fetch: typeof fetch;
}

/** What an operation is given. */
export interface Call {
  path?: Record<string, string | number>;
  query?: Record<string, string | number | Date | null | undefined>;
  body?: unknown;
  /** Whether it may be repeated without an idempotency key: all but POST may, unless said otherwise. */
  safe?: boolean;
  idempotencyKey?: string;
}

/** Requests and their repetition. */
export class Http {
  readonly #settings: Settings;

  constructor(settings: Settings) {
    this.#settings = { ...settings, url: settings.url.replace(/\/+$/, "") };
  }

  get retry(): Retry {
    return this.#settings.retry;
  }

  /** Does an operation, such as `GET /v1/topics/{topic}`: what the node answered, or its error. */
  async call<T>(operation: string, { body, safe, idempotencyKey, ...target }: Call = {}): Promise<T> {
    const [method, url] = this.target(operation, target);
    const headers: Record<string, string> = {};
    if (body !== undefined) headers["content-type"] = method === "PATCH" ? "application/merge-patch+json" : "application/json";
    if (idempotencyKey !== undefined) headers["idempotency-key"] = idempotencyKey;
    const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
    const once = async () => {
      const text = await this.exchange(url, init);
      return (text ? JSON.parse(text) : undefined) as T;
    };
    const repeats = safe ?? (method !== "POST" || idempotencyKey !== undefined);
    return repeats ? this.repeat(once, method === "DELETE") : once();
  }

  /** Does something until it succeeds, is refused for good, or has failed too often. */
  async repeat<T>(once: () => Promise<T>, deletes = false): Promise<T> {
    for (let failures = 0; ; ) {
      try {
        return await once();
      } catch (error) {
        // The answer to the first DELETE was lost, and it was done.
        if (deletes && failures > 0 && error instanceof ApiError && error.status === 404) return undefined as T;
        if (!isWorthRepeating(error)) throw error;
        const wait = waitMs(this.retry, ++failures, error);
        if (wait === undefined) throw error;
        await pause(wait);
      }
    }
  }

  /** One request, and the text of its answer. */
  async exchange(url: string, init: RequestInit): Promise<string> {
    const signal = AbortSignal.timeout(this.#settings.timeoutMs);
    return this.#answered(init.method ?? "GET", url, async () => {
      const response = await this.open(url, { ...init, signal });
      return response.text();
    });
  }

  /** The pieces of an answer that goes on. One that is silent for too long has no answer. */
  async *stream(url: string, headers: Record<string, string>, silenceMs: number, signal?: AbortSignal): AsyncGenerator<string> {
    const stop = new AbortController();
    const onAbort = () => stop.abort(signal?.reason);
    signal?.throwIfAborted();
    signal?.addEventListener("abort", onAbort, { once: true });
    let timer = setTimeout(() => stop.abort(), silenceMs);
    try {
      const response = await this.#answered("GET", url, () => this.open(url, { headers, signal: stop.signal }), signal);
      if (!response.body) throw new NoAnswer(`GET ${url}: no body`);
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await this.#answered("GET", url, () => reader.read(), signal);
        if (done) return;
        clearTimeout(timer);
        timer = setTimeout(() => stop.abort(), silenceMs);
        yield value;
      }
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      stop.abort();
    }
  }

  /** A response that says yes. */
  async open(url: string, init: RequestInit): Promise<Response> {
    const headers = { authorization: `Bearer ${this.#settings.key}`, ...(init.headers as Record<string, string>) };
    const response = await this.#settings.fetch(url, { ...init, headers });
    if (!response.ok) throw await refusal(response);
    return response;
  }

  /** Method and URL of an operation. */
  target(operation: string, { path = {}, query = {} }: Call = {}): [string, string] {
    const [method = "", template = ""] = operation.split(" ");
    const filled = template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(path[name])));
    const given = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
      if (value != null) given.set(name, value instanceof Date ? value.toISOString() : String(value));
    }
    const { url, domain } = this.#settings;
    if (domain !== undefined && !/^\/v1\/(notifications\/\{id\}|key)$/.test(template)) given.set("domain", domain);
    return [method, url + filled + (given.size ? `?${given}` : "")];
  }

  /** What is promised; what keeps it from being there is a `NoAnswer`, but for the caller's own signal. */
  async #answered<T>(method: string, url: string, promised: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    try {
      return await promised();
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof ApiError) throw error;
      throw new NoAnswer(`${method} ${url}: ${error}`, { cause: error });
    }
  }
}

/** What the node says is wrong. */
async function refusal(response: Response): Promise<ApiError> {
  const text = await response.text();
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
  return new ApiError(response.status, read(response, text), Number.isNaN(seconds) ? undefined : seconds * 1000);
}

function read(response: Response, text: string): Problem {
  try {
    const problem = JSON.parse(text) as Problem;
    if (typeof problem.code === "string" && typeof problem.detail === "string") return problem;
  } catch {
    // A proxy answered.
  }
  return { type: "about:blank", code: "", title: response.statusText, status: response.status, detail: text.slice(0, 200) };
}
