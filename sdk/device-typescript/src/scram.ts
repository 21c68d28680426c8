/**
 * SCRAM-SHA-256 (RFC 5802, RFC 7677) by Web Cryptography: xmpp.js has only SCRAM-SHA-1, in JavaScript that takes a second of the processor, and in
 * browsers none.
 */
export class ScramSha256 {
  declare readonly name: string;
  declare readonly clientFirst: boolean;
  #nonce = btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(18))));
  #first = "";
  #challenge: string | undefined;
  #signature: string | undefined;

  /** What the client says first, and what it answers. */
  async response({ username, password }: { username: string; password?: string }): Promise<string> {
    if (this.#challenge === undefined) {
      this.#first = `n=${username.replaceAll("=", "=3D").replaceAll(",", "=2C")},r=${this.#nonce}`;
      return `n,,${this.#first}`;
    }
    const { r: nonce = "", s: salt = "", i: iterations = "" } = fields(this.#challenge);
    if (!nonce.startsWith(this.#nonce)) throw new Error("the server answered somebody else");
    const salted = await hash(password ?? "", salt, Number(iterations));
    const [clientKey, serverKey] = [await hmac(salted, "Client Key"), await hmac(salted, "Server Key")];
    const stored = new Uint8Array(await crypto.subtle.digest("SHA-256", clientKey));
    // `biws` is `n,,` in Base64.
    const unproved = `c=biws,r=${nonce}`;
    const signed = `${this.#first},${this.#challenge},${unproved}`;
    const mask = await hmac(stored, signed);
    this.#signature = base64(await hmac(serverKey, signed));
    return `${unproved},p=${base64(clientKey.map((byte, at) => byte ^ (mask[at] ?? 0)))}`;
  }

  /** Takes the server's challenge. */
  challenge(text: string): void {
    this.#challenge = text;
  }

  /** Checks that the server knows the secret, too. */
  final(text: string): void {
    if (fields(text)["v"] !== this.#signature) throw new Error("the server did not prove that it knows the secret");
  }
}

Object.assign(ScramSha256.prototype, { name: "SCRAM-SHA-256", clientFirst: true });

type Bytes = Uint8Array<ArrayBuffer>;

const fields = (text: string): Record<string, string> => Object.fromEntries(text.split(",").map((field) => [field[0], field.slice(2)]));

const base64 = (bytes: Bytes): string => btoa(String.fromCharCode(...bytes));

async function hash(password: string, salt: string, iterations: number): Promise<Bytes> {
  const key = await crypto.subtle.importKey("raw", new TextEncoder().encode(password.normalize("NFKC")), "PBKDF2", false, ["deriveBits"]);
  const bytes = Uint8Array.from(atob(salt), (letter) => letter.charCodeAt(0));
  return new Uint8Array(await crypto.subtle.deriveBits({ name: "PBKDF2", hash: "SHA-256", salt: bytes, iterations }, key, 256));
}

async function hmac(key: Bytes, text: string): Promise<Bytes> {
  const imported = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", imported, new TextEncoder().encode(text)));
}
