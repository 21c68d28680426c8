// What this package uses of xmpp.js, which has no types of its own.

declare module "@xmpp/client-core" {
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

  export class Client {
    constructor(options: { service: string; domain: string });
    jid: { toString(): string } | null;
    status: string;
    timeout: number;
    socket: { end(): void } | null;
    on(event: "online" | "disconnect", listener: () => void): void;
    on(event: "error", listener: (error: Error & { condition?: string; element?: Element }) => void): void;
    on(event: "element" | "stanza", listener: (stanza: Element) => void): void;
    once(event: "disconnect", listener: () => void): void;
    removeAllListeners(event: "nonza"): void;
    connect(service: string): Promise<void>;
    open(options: { domain: string }): Promise<unknown>;
    send(element: Element): Promise<void>;
    disconnect(): Promise<unknown>;
    stop(): Promise<unknown>;
  }

  export function xml(name: string, attrs?: Record<string, string | undefined> | null, ...children: (Element | string | undefined)[]): Element;
}

declare module "@xmpp/client-core/src/bind2/bind2.js" {
  export default function bind2(parts: object): object;
}

declare module "@xmpp/client-core/src/fast/fast.js" {
  interface Token {
    mechanism: string;
    token: string;
    expiry: string;
  }
  export default function fast(parts: object): {
    saslFactory: object;
    saveToken(token: Token): Promise<void>;
    fetchToken(): Promise<Token | undefined>;
    deleteToken(): Promise<void>;
  };
}

declare module "@xmpp/iq/callee.js" {
  export default function iqCallee(parts: object): { get(ns: string, name: string, answer: () => object): void };
}

declare module "@xmpp/iq/caller.js" {
  import type { Element } from "@xmpp/client-core";
  type Ask = (element: Element, to?: string, timeout?: number) => Promise<Element | undefined>;
  export default function iqCaller(parts: object): { get: Ask; set: Ask };
}

declare module "@xmpp/middleware" {
  export default function middleware(parts: object): object;
}

declare module "@xmpp/sasl-ht-sha-256-none" {
  export default function use(saslFactory: object): void;
}

declare module "@xmpp/sasl2" {
  type Authenticate = (credentials: object, mechanism: string, userAgent: object) => Promise<void>;
  export default function sasl2(parts: object, onAuthenticate: (authenticate: Authenticate) => Promise<void>): {
    setup(parts: { fast: object }): void;
  };
}

declare module "@xmpp/stream-features" {
  export default function streamFeatures(parts: object): object;
}

declare module "@xmpp/stream-management" {
  export default function streamManagement(parts: object): { timeout: number; on(event: "resumed", listener: () => void): void };
}

declare module "@xmpp/websocket" {
  export default function websocket(parts: object): void;
}

declare module "saslmechanisms" {
  export default class SASLFactory {
    use(mechanism: new () => object): void;
  }
}
