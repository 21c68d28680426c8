// What this package uses of xmpp.js, which has no types of its own.
declare module "@xmpp/client" {
  export class Element {
    name: string;
    attrs: Record<string, string>;
    is(name: string, xmlns?: string): boolean;
    getChild(name: string, xmlns?: string): Element | undefined;
    getChildText(name: string, xmlns?: string): string | null;
    getChildren(name: string, xmlns?: string): Element[];
    getChildElements(): Element[];
    getNS(): string;
    toString(): string;
  }

  export interface Token {
    mechanism: string;
    token: string;
    expiry: string;
  }

  interface Fast {
    saveToken(token: Token): Promise<void>;
    fetchToken(): Promise<Token | undefined>;
    deleteToken(): Promise<void>;
    fetch(): Promise<Token | undefined>;
  }

  interface Jid {
    toString(): string;
    bare(): Jid;
  }

  type Authenticate = (credentials: { username: string; password?: string; token?: Token | undefined }, mechanism: string | undefined, userAgent: Element) => Promise<void>;

  export interface Client {
    jid: Jid | null;
    status: string;
    timeout: number;
    fast: Fast;
    socket: { end(): void } | null;
    reconnect: { stop(): void; reconnect(): Promise<void> };
    saslFactory: { use(mechanism: new () => object): void };
    streamManagement: { timeout: number; on(event: "resumed", listener: () => void): void };
    bind2: { use(ns: string, request: () => Element | undefined, answer: () => void): void };
    iqCaller: {
      get(element: Element, to?: string, timeout?: number): Promise<Element>;
      set(element: Element, to?: string, timeout?: number): Promise<Element | undefined>;
    };
    on(event: "online" | "disconnect", listener: () => void): void;
    on(event: "error", listener: (error: Error & { condition?: string; element?: Element }) => void): void;
    on(event: "element" | "stanza", listener: (stanza: Element) => void): void;
    isSecure(): boolean;
    send(element: Element): Promise<void>;
    disconnect(): Promise<unknown>;
    stop(): Promise<unknown>;
  }

  export function client(options: {
    service: string;
    domain: string;
    resource?: string | undefined;
    userAgent?: Element;
    username: string;
    credentials: (authenticate: Authenticate, mechanisms: string[], fast: Fast | null, entity: Client) => Promise<void>;
  }): Client;

  export function xml(name: string, attrs?: Record<string, string | undefined> | null, ...children: (Element | string | undefined)[]): Element;
}
