import type { Element } from "@xmpp/client-core";

import type { Notification, TopicEvent } from "./messages.js";

const NOTIFICATION = "urn:carillon:notification:0";
const JSON_CONTAINER = "urn:xmpp:json:0";
const EVENT = "http://jabber.org/protocol/pubsub#event";

/** The notification that a message carries, if it does. */
export function notificationOf(message: Element): Notification | undefined {
  const about = message.getChild("notification", NOTIFICATION);
  if (!about) return undefined;
  const { priority, sent = "", expires, "collapse-key": collapseKey } = about.attrs;
  return {
    id: message.attrs["id"] ?? "",
    ...payloadOf(message),
    priority: priority as Notification["priority"],
    sentAt: new Date(sent),
    ...(expires === undefined ? {} : { expiresAt: new Date(expires) }),
    ...(collapseKey === undefined ? {} : { collapseKey }),
  };
}

/** What a message tells of a topic; nothing where it does not. */
export function topicEventsOf(message: Element): TopicEvent[] {
  const stamp = message.getChild("delay", "urn:xmpp:delay")?.attrs["stamp"];
  const at = stamp === undefined ? {} : { publishedAt: new Date(stamp) };
  return (message.getChild("event", EVENT)?.getChildElements() ?? []).flatMap((about): TopicEvent[] => {
    const topic = about.attrs["node"] ?? "";
    if (about.is("purge")) return [{ type: "purged", topic }];
    if (about.is("delete")) return [{ type: "deleted", topic }];
    return about.getChildElements().map((one) => {
      const id = one.attrs["id"] ?? "";
      return one.is("retract") ? { type: "retracted", topic, id } : { type: "item", topic, id, ...payloadOf(one), ...at };
    });
  });
}

/** JSON, or else the provider's own element. */
function payloadOf(parent: Element): { payload?: unknown; xml?: string } {
  const json = parent.getChildText("json", JSON_CONTAINER);
  if (json !== null) return { payload: JSON.parse(json) };
  const own = parent.getChildElements().find((child) => !SERVERS_OWN.has(child.getNS()));
  return own ? { xml: own.toString() } : {};
}

/** What the server adds to a message. */
const SERVERS_OWN = new Set([NOTIFICATION, "urn:xmpp:receipts", "urn:xmpp:delay", "urn:xmpp:sid:0", EVENT]);
