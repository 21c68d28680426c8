// One topic: published to, its items and followers, its settings.

import { del, here, path, post } from "./api.js";
import { address, button, confirm, empty, facts, field, h, input, link } from "./dom.js";
import { count, exact, moment } from "./format.js";
import { card, failure, form, heading, payload } from "./page.js";
import { ACCESS, kept, topicForm } from "./topics.js";

const ITEMS_MAX = 50;
const FOLLOWERS_MAX = 100;

export function topic(page) {
  const [name] = page.params;
  const url = (...more) => path("v1", "topics", name, ...more);
  const head = h("div", {}, heading(name));
  const [figures, items, followers, settings] = [h("div", {}), h("div", { id: "topic-items" }), h("div", {}), h("div", {})];
  const body = h("div", { class: "grid side", hidden: true },
    h("div", { class: "stack" }, figures, items, followers), h("div", { class: "stack" }, publication(page, url, () => read()), settings));

  async function read() {
    try {
      const t = await page.get(url(), here());
      head.replaceChildren(heading(h("span", { class: "break" }, name), [t.config.title, `Keeps ${kept(t.config)}`, `open to ${ACCESS[t.config.access_model]}`, `created ${moment(t.created_at)}`].filter(Boolean).join(" · "),
        button("Remove", "danger", remove, { "data-testid": "topic-remove" })));
      figures.replaceChildren(card("Figures", facts([
        ["Followers", count(t.figures.subscribers)],
        ["Sessions following now", count(t.figures.sessions)],
        ["Items published since the node started", count(t.figures.published)],
        ["Deliveries since the node started", count(t.figures.delivered)],
      ])));
      settings.replaceChildren(topicForm(page, { topic: t, saved: () => { page.say("The settings are saved."); read(); } }));
      body.hidden = false;
      await Promise.all([showItems(t), showFollowers()]);
    } catch (problem) {
      body.hidden = true;
      head.replaceChildren(heading(h("span", { class: "break" }, name)), h("section", { class: "card" }, failure(problem, read)));
    }
  }

  async function showItems(t) {
    const { items: list } = await page.get(url("items"), here({ limit: ITEMS_MAX }));
    const many = list.length === ITEMS_MAX ? `the newest ${ITEMS_MAX}` : String(list.length);
    items.replaceChildren(card(`Kept items (${many} of at most ${t.config.persist_items ? t.config.max_items : 0})`,
      list.length ? list.map(entry) : empty("No items", "Nothing is kept in this topic now.")));
  }

  function entry(item) {
    const text = item.payload === undefined ? item.payload_xml ?? "(empty)" : JSON.stringify(item.payload, null, 1);
    const retract = () => page.attempt(async () => {
      await del(url("items", item.id), here());
      read();
    });
    return h("div", { class: "item", "data-item": item.id },
      h("div", { class: "row between" }, h("div", { class: "break" }, h("span", { class: "mono" }, item.id), " ", h("span", { class: "muted" }, exact(item.published_at))),
        button("Retract", "quiet danger", retract)),
      h("pre", {}, text));
  }

  async function showFollowers() {
    const answer = await page.get(url("subscribers"), here({ limit: FOLLOWERS_MAX }));
    const list = answer.subscribers;
    followers.replaceChildren(card(answer.next ? `Followers (the first ${FOLLOWERS_MAX})` : `Followers (${list.length})`, list.length
      ? h("ul", { class: "lines" }, list.map((jid) => h("li", { class: "mono break" }, link(jid, "devices", jid))))
      : empty("No followers yet", "Devices subscribe over XMPP or through the API.")));
  }

  const remove = () => page.attempt(async () => {
    if (!(await confirm(`Remove ${name}?`, "Its items and subscriptions are deleted.", "Remove"))) return;
    await del(url(), here());
    location.hash = address("topics");
    page.say(`Topic ${name} is removed.`);
  });

  page.load(read);
  return h("div", {}, head, body);
}

function publication(page, url, published) {
  const text = h("textarea", { id: "publish-payload", "data-testid": "publish-payload", required: true, spellcheck: "false", placeholder: '{ "headline": "…" }' });
  const id = input("publish-id", { maxlength: 1023, placeholder: "Generated if empty" });
  return form(page, {
    id: "publish", title: "Publish", submit: "Publish", pointers: { "/payload": text, "/payload_xml": text, "/id": id },
    fields: [field("Payload", text, "Any JSON value, or one XML element in a namespace of its own."), field("Item id", id, "An item with the same id is replaced.")],
    act: async () => {
      const body = payload(text.value);
      if (id.value) body.id = id.value;
      const item = await post(url("items"), body, here());
      page.say(`Published as ${item.id}.`);
      published();
    },
  });
}
