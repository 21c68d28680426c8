/**
 * A client for those who send with Carillon: notifications, topics, devices, links, invitations, receipts and webhooks.
 *
 * @module
 */
export { Client, type ClientOptions, type Idempotency } from "./client.js";
export { ApiError, BadSignature, CarillonError, NoAnswer } from "./errors.js";
export { type Event, Events, type EventsOptions } from "./events.js";
export type { Retry } from "./retry.js";
export type * from "./types.js";
export { type VerifyOptions, type WebhookRequest, verifyWebhook } from "./webhooks.js";
