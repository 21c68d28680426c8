import type { Problem } from "./types.js";

/** Any error of this package. */
export class CarillonError extends Error {
  override name = "CarillonError";
}

/** No answer came, or not all of it. Whether the request was done is not known. */
export class NoAnswer extends CarillonError {
  override name = "NoAnswer";
}

/**
 * The node refused a request. `code` keeps its meaning and is what to decide by; `detail` is for people; `pointer` names the member of the
 * body. Quote `requestId` when you ask for help. `retryAfterMs` is how long the node asked to wait, if it did. `problem` has all that it said.
 */
export class ApiError extends CarillonError {
  override name = "ApiError";
  readonly code: string;
  readonly detail: string;
  readonly pointer: string | undefined;
  readonly requestId: string | undefined;

  constructor(
    readonly status: number,
    readonly problem: Problem,
    readonly retryAfterMs?: number,
  ) {
    super(`${status} ${problem.code}: ${problem.detail}${problem.request_id ? ` (request ${problem.request_id})` : ""}`);
    this.code = problem.code;
    this.detail = problem.detail;
    this.pointer = problem.pointer;
    this.requestId = problem.request_id;
  }
}

/** A request to a webhook was not signed with its secret, or not lately. Answer 400, and do not use it. */
export class BadSignature extends CarillonError {
  override name = "BadSignature";
}
