import { BadSignature } from "./errors.js";
import type { NotificationView, RoomEventView } from "./types.js";

/** What a request to a webhook says. */
export interface WebhookRequest {
  /** `notifications.ended`; `events` for a webhook that is told of rooms, too; or `test`, which has no events. */
  type: string;
  /** The webhook's number. */
  webhook: number;
  /** How notifications ended, or that they were opened; or what happened to rooms. An event may come more than once, with the same `id`. */
  events: ({ id: number; notification: NotificationView; room?: undefined } | { id: number; notification?: undefined; room: RoomEventView })[];
  /** The events between these numbers were forgotten before they could be sent. */
  gap?: { after: number; next: number };
}

/** How to verify. */
export interface VerifyOptions {
  /** How old a signature may be, or how far ahead: 300,000. */
  toleranceMs?: number;
  /** The time, in milliseconds since 1970. */
  now?: number;
}

type Bytes = Uint8Array<ArrayBuffer>;

/**
 * What a request to a webhook says, or `BadSignature`.
 *
 * `body` is as it came, before anything parsed it; `headers` a `Headers`, or an object with names in lower case as Node has it. While a secret is
 * being changed, give the new one and the old one. Signatures are compared in constant time, by Web Cryptography.
 */
export async function verifyWebhook(
  secrets: string | string[],
  headers: Headers | Record<string, string | string[] | undefined>,
  body: Uint8Array | string,
  { toleranceMs = 300_000, now = Date.now() }: VerifyOptions = {},
): Promise<WebhookRequest> {
  const header = (name: string) => (headers instanceof Headers ? headers.get(name) : headers[name]);
  const [id, timestamp, given] = [header("webhook-id"), header("webhook-timestamp"), header("webhook-signature")];
  if (typeof id !== "string" || typeof given !== "string" || !/^\d+$/.test(String(timestamp))) {
    throw new BadSignature("the headers of a webhook are not there");
  }
  const age = Math.abs(now - Number(timestamp) * 1000);
  if (age > toleranceMs) throw new BadSignature(`the request was signed ${Math.round(age / 1000)} seconds ago, or ahead`);
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const signed = join(new TextEncoder().encode(`${id}.${timestamp}.`), bytes);
  const signatures = given.split(" ").flatMap((one) => (one.startsWith("v1,") ? [decode(one.slice(3))] : []));
  let isSigned = false;
  for (const secret of [secrets].flat()) {
    const key = await importKey(secret);
    // All are compared, so that the time does not tell which one was right.
    for (const signature of signatures) {
      if (signature && (await crypto.subtle.verify("HMAC", key, signature, signed))) isSigned = true;
    }
  }
  if (!isSigned) throw new BadSignature("no signature is by the webhook's secret");
  return JSON.parse(new TextDecoder().decode(bytes)) as WebhookRequest;
}

async function importKey(secret: string): Promise<CryptoKey> {
  // `atob` passes over spaces. An empty secret is one that somebody forgot to set.
  const key = /^(whsec_)?[A-Za-z0-9+/]+={0,2}$/.test(secret) && decode(secret.replace(/^whsec_/, ""));
  if (!key) throw new TypeError("the secret of a webhook is `whsec_` and Base64");
  return crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
}

/** The bytes of Base64; none where it is not. */
function decode(text: string): Bytes | undefined {
  try {
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function join(first: Bytes, second: Uint8Array): Bytes {
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}
