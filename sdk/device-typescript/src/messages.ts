/** A notification. Its payload is what the provider sent, or `xml` where that was an element. */
export interface Notification<P = unknown> {
  id: string;
  payload?: P;
  xml?: string;
  priority: "low" | "normal" | "high";
  sentAt: Date;
  expiresAt?: Date;
  collapseKey?: string;
}

/** What happened on a topic: an item was published or retracted, all were, or the topic is gone. */
export type TopicEvent<P = unknown> =
  | { type: "item"; topic: string; id: string; payload?: P; xml?: string; /** Of an item that was published before. */ publishedAt?: Date }
  | { type: "retracted"; topic: string; id: string }
  | { type: "purged"; topic: string }
  | { type: "deleted"; topic: string };
