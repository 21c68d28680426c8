/**
 * A device of Carillon: notifications and topics over WebSocket, in browsers and Node.
 *
 * @module
 */
export { Device, type DeviceOptions, Refused, type State } from "./device.js";
export { type EnrolOptions, type Enrolled, enrol } from "./enrol.js";
export type { Notification, TopicEvent } from "./messages.js";
export { type Kept, type Store, type Token, memory, webStorage } from "./store.js";
