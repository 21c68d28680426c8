import { ApiError, NoAnswer } from "./errors.js";

/**
 * When a request that is safe to send again is sent again. The wait before the `n`th repetition is random, up to `firstMs` doubled `n - 1` times
 * and `longestMs` at most. Where the node says `Retry-After`, that comes before it. A node that asks for more than `patienceMs` is not waited
 * for: its refusal is the result.
 */
export interface Retry {
  /** How often a request is sent at most, the first time included: 4. */
  attempts: number;
  /** 500. */
  firstMs: number;
  /** 30,000. */
  longestMs: number;
  /** 60,000. */
  patienceMs: number;
}

export const DEFAULT_RETRY: Retry = { attempts: 4, firstMs: 500, longestMs: 30_000, patienceMs: 60_000 };

/** What says: not now. */
const STATUSES = new Set([429, 502, 503, 504]);

/** Whether a refusal with this status may be otherwise later. */
export const isForNow = (status: number): boolean => STATUSES.has(status);

/** Whether what failed may succeed later. `in-progress`: the first attempt is still being worked on. */
export function isWorthRepeating(error: unknown): error is ApiError | NoAnswer {
  return error instanceof NoAnswer || (error instanceof ApiError && (isForNow(error.status) || error.code === "in-progress"));
}

/** Milliseconds to wait after so many failures in a row; none to give up. */
export function waitMs(retry: Retry, failures: number, error: ApiError | NoAnswer): number | undefined {
  const asked = (error instanceof ApiError && error.retryAfterMs) || 0;
  if (failures >= retry.attempts || asked > retry.patienceMs) return undefined;
  return asked + backoffMs(retry, failures);
}

/** A random wait that grows with the failures. All clients of a node that was away do not come back at once. */
export function backoffMs(retry: Retry, failures: number): number {
  return Math.random() * Math.min(retry.longestMs, retry.firstMs * 2 ** (failures - 1));
}

/** Waits; ends early, with its reason, when the signal is given. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}
