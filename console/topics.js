// Topics: listed and created.

import { here, patch, path, put, session } from "./api.js";
import { address, badge, field, h, input, link, select } from "./dom.js";
import { count, day, many, moment } from "./format.js";
import { form, heading, listing, row } from "./page.js";

const COLUMNS = ["Topic", "Sessions following", "Keeps at most", "Who may follow", "Created"];
export const ACCESS = { open: "everyone", whitelist: "members" };

export function topics(page) {
  const all = listing(page, {
    id: "topics", title: "All topics", columns: COLUMNS,
    read: (after) => ["/v1/topics", here({ after, limit: 50 })],
    line: (t) => row(COLUMNS, { "data-topic": t.name },
      ["jid", [link(t.name, "topics", t.name), t.config.title && h("div", { class: "muted small" }, t.config.title)]],
      ["num", count(t.figures.sessions)], kept(t.config), badge(ACCESS[t.config.access_model] ?? t.config.access_model, t.config.access_model === "open" ? "good" : ""), ["when", day(t.created_at), moment(t.created_at)]),
    none: ["No topics yet", "Create the first one with the form."],
  });
  const created = (name) => {
    page.say(`Topic ${name} is created.`);
    location.hash = address("topics", name);
  };
  return h("div", {},
    heading("Topics", `What is published to a topic of ${session.domain} is delivered to every device that follows it.`),
    h("div", { class: "grid side wide-left" }, all.element, topicForm(page, { saved: created })));
}

/** How many items a topic keeps. */
export function kept(config) {
  return config.persist_items ? many(config.max_items, "item") : "no items";
}

/** The form for a new topic, or for the settings of one. */
export function topicForm(page, { topic, saved }) {
  const config = topic?.config ?? { title: "", persist_items: true, max_items: 1, access_model: "open" };
  const name = input("topic-name", { required: true, maxlength: 1023, placeholder: "news/today", value: topic?.name, readonly: Boolean(topic) });
  const title = h("input", { id: "topic-title", maxlength: 256, autocomplete: "off", value: config.title });
  const items = h("input", { id: "topic-max-items", type: "number", min: 0, max: 10000, value: config.persist_items ? config.max_items : 0, inputmode: "numeric", required: true });
  const access = select("topic-access", [["open", "Everyone"], ["whitelist", "Members only"]], config.access_model);
  return form(page, {
    id: "topic", title: topic ? "Settings" : "New topic", submit: topic ? "Save" : "Create", pointers: { "/title": title, "/max_items": items },
    fields: [!topic && field("Name", name), field("Title", title, "A name for people. Optional."),
      h("div", { class: "fields" }, field("Items kept at most", items), field("Who may follow", access))],
    act: async () => {
      const most = Number(items.value);
      const wanted = { title: title.value, access_model: access.value, persist_items: most > 0, max_items: Math.max(1, most) };
      await (topic ? patch : put)(path("v1", "topics", name.value), wanted, here());
      await saved(name.value);
    },
  });
}
