/** A device that was enrolled: what it needs to connect, to be kept on the device. */
export interface Enrolled {
  id: string;
  /** Its address. */
  jid: string;
  /** What it logs in with: shown now and never again. */
  secret: string;
  endpoints: { host?: string | null; c2s_port?: number | null; c2s_tls_port?: number | null; websocket_url?: string | null };
}

/** What to enrol, and where. */
export interface EnrolOptions {
  /** The URL of the node's HTTP API. */
  url: string;
  /** An API key with the scope `enrol`. */
  key: string;
  /** The device's id; the node makes one where it is left out. */
  id?: string;
  /** The domain to act in, for a key of the whole node. */
  domain?: string;
}

/**
 * Enrols a device by the consumer API. This is for the service that operates the devices, which hands the answer to its device: an API key does
 * not belong on a device. Not repeated: an answer that is lost has the secret in it.
 */
export async function enrol({ url, key, id, domain }: EnrolOptions): Promise<Enrolled> {
  const query = domain === undefined ? "" : `?domain=${encodeURIComponent(domain)}`;
  const response = await fetch(`${url.replace(/\/+$/, "")}/v1/devices${query}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ id }),
    signal: AbortSignal.timeout(10_000),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(`${response.status} ${answer.code}: ${answer.detail}`);
  return answer as Enrolled;
}
