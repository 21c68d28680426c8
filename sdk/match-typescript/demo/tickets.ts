// How a guest finds a match: the demo of a node gives tickets to this page. In a game of your own your back end does that, with an API key.

import type { Seat } from "./player.js";

const ASK_AGAIN_MS = 200;

interface Ticket {
  id: string;
  state: "waiting" | "matched" | "ended" | "expired";
  seating?: { token: string };
}

async function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
  const init = body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const response = await fetch(`/demo/match/tickets${path}`, { method, ...init });
  const answer = response.status === 204 ? undefined : await response.json();
  if (!response.ok) throw new Error(answer.detail ?? `${method} ${path}: ${response.status}`);
  return answer as T;
}

/** Waits for a seat at a table until there is one, or nobody waits any more. */
export async function seat(table: string, signal: AbortSignal): Promise<Seat> {
  for (;;) {
    const { websocket_url: url, ticket } = await ask<{ websocket_url: string; ticket: Ticket }>("POST", "", { table });
    const withdraw = () => void fetch(`/demo/match/tickets/${ticket.id}`, { method: "DELETE", keepalive: true });
    // Nobody waits any more since before there was a ticket.
    if (signal.aborted) withdraw();
    signal.throwIfAborted();
    signal.addEventListener("abort", withdraw);
    let seen = ticket;
    while (seen.state === "waiting") {
      await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
      signal.throwIfAborted();
      seen = await ask<Ticket>("GET", `/${ticket.id}`);
    }
    signal.removeEventListener("abort", withdraw);
    // One that expired is entered again.
    if (seen.seating) return { url, token: seen.seating.token };
  }
}
