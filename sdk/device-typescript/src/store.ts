/** What stands for a secret at a login, for some weeks. */
export interface Token {
  mechanism: string;
  token: string;
  expiry: string;
}

/** What a device keeps between its runs, so that it logs in with a token: in one round trip, and without its secret. */
export interface Kept {
  /** The client's own id, to which tokens are bound. */
  userAgent: string;
  token?: Token;
  /** The last item of each topic, which is then not sent again. */
  items: Record<string, string>;
}

/** Where a device keeps it. */
export interface Store {
  load(): Kept | undefined | Promise<Kept | undefined>;
  save(kept: Kept): void | Promise<void>;
}

/** A store in `localStorage` or `sessionStorage`, under a name. */
export function webStorage(storage: Pick<Storage, "getItem" | "setItem">, name: string): Store {
  return {
    load: () => JSON.parse(storage.getItem(name) ?? "null") ?? undefined,
    save: (kept) => storage.setItem(name, JSON.stringify(kept)),
  };
}

/** A store that ends with the program. */
export function memory(): Store {
  let kept: Kept | undefined;
  return { load: () => kept, save: (latest) => void (kept = structuredClone(latest)) };
}
