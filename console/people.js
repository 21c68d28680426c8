// Whom an account talks with: its contacts, and its conversations without what was said in them.

import { path, session } from "./api.js";
import { badge, button, empty, h, link } from "./dom.js";
import { count, exact, moment } from "./format.js";
import { card, row, table } from "./page.js";

const SHOWN_MAX = 50;
const TALKS = ["With", "Unread", "Newest message", ""];
const MESSAGES = ["From", "Said", "At"];
const SUBSCRIPTIONS = { both: ["see each other", "good"], to: ["sees it", ""], from: ["is seen by it", ""], none: ["neither", ""] };

/** The contacts of an account, in a card. */
export async function contacts(page, where, jid) {
  const answer = await page.attempt(() => page.get(path("v1", "accounts", jid, "roster")));
  if (!answer) return;
  const list = [...answer.contacts].sort((a, b) => a.jid.localeCompare(b.jid));
  const line = (c) => h("li", { class: "row between", "data-contact": c.jid },
    h("div", { class: "break" }, link(c.jid, "devices", c.jid), h("div", { class: "muted small" }, [c.name, ...c.groups].filter(Boolean).join(" · "))),
    badge(...(c.asked ? ["asked", "warn"] : SUBSCRIPTIONS[c.subscription] ?? [c.subscription])));
  const shown = list.slice(0, SHOWN_MAX);
  where.replaceChildren(card(shown.length < list.length ? `Contacts (the first ${SHOWN_MAX} of ${count(list.length)})` : `Contacts (${list.length})`,
    list.length ? h("ul", { class: "lines" }, shown.map(line)) : empty("No contacts", "The account has nobody in its roster.")));
}

/** The conversations of an account, in a card, when they are asked for: with whom, when, and how much is unread; and what was said when that is asked for. */
export function conversations(page, where, jid) {
  const ask = button("Show conversations", "quiet", () => page.attempt(() => show(page, where, jid)), { "data-testid": "conversations-show" });
  where.replaceChildren(card("Conversations", h("p", { class: "muted small" }, "With whom the account talks is read when you ask for it."), h("div", { class: "card-foot" }, ask)));
}

async function show(page, where, jid) {
  let answer;
  try {
    answer = await page.get(path("v1", "accounts", jid, "conversations"), { limit: SHOWN_MAX });
  } catch (problem) {
    const text = problem.code === "no-archive" ? "The domain keeps no archives, of which conversations are made." : problem.message;
    return where.replaceChildren(card("Conversations", h("p", { class: "muted small" }, text)));
  }
  const reads = session.own.scopes.includes("read_messages");
  const contents = h("div", { "aria-live": "polite" });
  const line = (c) => row(TALKS, { "data-conversation": c.with }, ["mono jid", /@(rooms|muclight)[.]/.test(c.with) ? link(c.with, "rooms", c.with) : link(c.with, "devices", c.with)],
    ["num", c.unread ? badge(count(c.unread), "accent") : "–"], ["when", moment(c.last_at)],
    ["actions", reads && button("Read", "quiet", () => page.attempt(() => read(page, contents, jid, c.with)), { "data-testid": "conversation-read" })]);
  const list = answer.conversations;
  where.replaceChildren(card(`Conversations (${count(answer.total)}, ${count(answer.unread_messages)} unread)`,
    list.length ? h("div", {}, table("conversations", TALKS, list.map(line)), contents) : empty("No conversations", "The account has talked with nobody."),
    h("p", { class: "card-foot muted small" }, reads ? "It is noted that this key reads what was said." : "What was said is shown to keys with the scope read_messages.")));
}

/** The newest messages of a conversation. */
async function read(page, where, jid, other) {
  const answer = /@(rooms|muclight)[.]/.test(other)
    ? await page.get(path("v1", "rooms", other, "messages"), { domain: other.slice(other.indexOf(".") + 1), limit: SHOWN_MAX })
    : await page.get(path("v1", "accounts", jid, "messages"), { with: other, limit: SHOWN_MAX });
  const line = (m) => row(MESSAGES, { "data-message": String(m.id) }, ["mono jid", m.from ?? ""], ["jid", m.body ?? h("span", { class: "muted" }, "(no text)")], ["when", exact(m.received_at)]);
  where.replaceChildren(h("h3", { class: "below break" }, `The newest messages with ${other}`), table("messages", MESSAGES, answer.messages.map(line)));
}
