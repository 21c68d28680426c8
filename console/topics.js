// Topics: listed, created, published to.

import { del, get, here, path, post, put } from "./api.js";
import { badge, confirm, dayCell, empty, field, h, moment, select, toast } from "./dom.js";

export function topics({ params, go }) {
  const rows = h("tbody", {});
  const list = h("div", {});
  const side = h("div", { class: "stack" });
  const more = h("button", { class: "button", type: "button", hidden: true, onclick: () => load(next) }, "Show more");
  let next = null;
  let chosen = params[0] ?? null;

  async function load(after) {
    try {
      const page = await get("/v1/topics", here({ after, limit: 50 }));
      if (!after) rows.replaceChildren();
      rows.append(...page.topics.map(row));
      next = page.next;
      more.hidden = !next;
      list.replaceChildren(rows.children.length ? table() : empty("No topics yet", "Create the first one with the form."));
    } catch (problem) {
      list.replaceChildren(h("p", { class: "error-text", role: "alert" }, problem.message));
    }
  }

  function table() {
    return h("div", { class: "table-wrap" }, h("table", { "data-testid": "topics" },
      h("thead", {}, h("tr", {}, ["Topic", "Items kept", "Access", "Created"].map((t) => h("th", { scope: "col" }, t)))), rows));
  }

  function row(topic) {
    const config = topic.config;
    return h("tr", { "data-topic": topic.name, "aria-selected": String(topic.name === chosen) },
      h("td", {}, h("button", { class: "link", type: "button", onclick: () => open(topic.name) }, topic.name),
        config.title && h("div", { class: "muted small" }, config.title)),
      h("td", { class: "num" }, config.persist_items ? String(config.max_items) : "none"),
      h("td", {}, badge(config.access_model, config.access_model === "open" ? "good" : "")),
      dayCell(topic.created_at));
  }

  function open(name) {
    chosen = name;
    for (const tr of rows.children) tr.setAttribute("aria-selected", String(tr.dataset.topic === name));
    go("topics", ...(name ? [name] : []));
    side.replaceChildren(name ? detail(name, { reload: () => load(), close: () => open(null) }) : creation(created));
  }

  async function created(name) {
    await load();
    open(name);
  }

  load();
  open(chosen);
  return h("div", {},
    h("div", { class: "page-head" }, h("div", {}, h("h1", {}, "Topics"), h("p", { class: "muted" }, "What is published to a topic goes to everyone who follows it, and its last item to everyone who logs in.")),
      h("button", { class: "button", type: "button", onclick: () => open(null) }, "New topic")),
    h("div", { class: "grid side" }, h("section", { class: "card" }, h("h2", {}, "All topics"), list, more), side));
}

function creation(created) {
  const name = h("input", { id: "topic-name", "data-testid": "topic-name", required: true, maxlength: 1023, placeholder: "news/today", autocomplete: "off" });
  const title = h("input", { id: "topic-title", maxlength: 256, autocomplete: "off" });
  const kept = h("input", { id: "topic-max-items", type: "number", min: 0, max: 10000, value: 1, inputmode: "numeric" });
  const access = select("topic-access", [["open", "Everyone"], ["whitelist", "Members"]], "open");
  const error = h("p", { class: "error-text", role: "alert" });
  const onsubmit = async (event) => {
    event.preventDefault();
    error.textContent = "";
    const items = Number(kept.value);
    const config = { title: title.value, access_model: access.value, persist_items: items > 0, max_items: Math.max(1, items) };
    try {
      await put(path("v1", "topics", name.value), config, here());
      toast(`Topic ${name.value} is there.`);
      await created(name.value);
    } catch (problem) {
      error.textContent = problem.message;
    }
  };
  return h("form", { id: "topic-form", class: "card form", onsubmit },
    h("h2", {}, "New topic"), field("Name", name), field("Title", title, "For people; may be empty."),
    h("div", { class: "fields" }, field("Items kept", kept), field("Who may follow", access)),
    error, h("div", { class: "row end" }, h("button", { id: "topic-create", class: "button primary", "data-testid": "topic-create", type: "submit" }, "Create")));
}

function detail(name, { reload, close }) {
  const items = h("div", { id: "topic-items" });
  const followers = h("div", {});
  const refresh = () => Promise.all([showItems(name, items), showFollowers(name, followers)]);
  const remove = async () => {
    if (!(await confirm(`Remove ${name}?`, "Its items and subscriptions go with it.", "Remove"))) return;
    try {
      await del(path("v1", "topics", name), here());
      toast(`Topic ${name} is gone.`);
      close();
      reload();
    } catch (problem) {
      toast(problem.message, "bad");
    }
  };
  refresh();
  return h("div", { class: "stack" },
    publication(name, refresh),
    h("section", { class: "card" }, h("h2", {}, "Kept items"), items),
    h("section", { class: "card" }, h("h2", {}, "Followers"), followers),
    h("div", { class: "row end" }, h("button", { class: "button quiet danger", type: "button", onclick: remove }, "Remove this topic")));
}

function publication(name, published) {
  const payload = h("textarea", { id: "publish-payload", "data-testid": "publish-payload", required: true, spellcheck: "false", placeholder: '{ "headline": "…" }' });
  const id = h("input", { id: "publish-id", maxlength: 1023, placeholder: "made by the server", autocomplete: "off" });
  const error = h("p", { class: "error-text", role: "alert" });
  const onsubmit = async (event) => {
    event.preventDefault();
    error.textContent = "";
    const text = payload.value.trim();
    try {
      const body = text.startsWith("<") ? { payload_xml: text } : { payload: JSON.parse(text) };
      if (id.value) body.id = id.value;
      const item = await post(path("v1", "topics", name, "items"), body, here());
      toast(`Published as ${item.id}.`);
      published();
    } catch (problem) {
      error.textContent = problem instanceof SyntaxError ? "The payload is neither JSON nor an XML element." : problem.message;
    }
  };
  return h("form", { id: "publish-form", class: "card form", onsubmit }, h("h2", {}, `Publish to ${name}`),
    field("Payload", payload, "Any JSON, or one XML element in a namespace of its own."), field("Item id", id, "An item of the same id is replaced."),
    error, h("div", { class: "row end" }, h("button", { id: "publish-submit", class: "button primary", "data-testid": "publish-submit", type: "submit" }, "Publish")));
}

async function showItems(name, where) {
  try {
    const page = await get(path("v1", "topics", name, "items"), here({ limit: 20 }));
    const retract = async (id) => {
      try {
        await del(path("v1", "topics", name, "items", id), here());
        showItems(name, where);
      } catch (problem) {
        toast(problem.message, "bad");
      }
    };
    where.replaceChildren(...(page.items.length ? page.items.map((item) => entry(item, retract)) : [empty("No items", "Nothing is kept here at the moment.")]));
  } catch (problem) {
    where.replaceChildren(h("p", { class: "error-text" }, problem.message));
  }
}

function entry(item, retract) {
  const text = item.payload === undefined ? item.payload_xml ?? "(empty)" : JSON.stringify(item.payload, null, 1);
  return h("div", { class: "item", "data-item": item.id },
    h("div", { class: "row between" }, h("span", {}, h("span", { class: "mono" }, item.id), " ", h("span", { class: "muted" }, moment(item.published_at))),
      h("button", { class: "button quiet danger", type: "button", onclick: () => retract(item.id) }, "Retract")),
    h("pre", {}, text));
}

async function showFollowers(name, where) {
  try {
    const page = await get(path("v1", "topics", name, "subscribers"), here({ limit: 50 }));
    const rest = page.next ? h("p", { class: "muted small" }, "and more") : null;
    where.replaceChildren(...(page.subscribers.length
      ? [h("div", { class: "row" }, page.subscribers.map((jid) => badge(jid))), rest].filter(Boolean)
      : [empty("No one follows it yet", "Devices follow topics over XMPP or by the API.")]));
  } catch (problem) {
    where.replaceChildren(h("p", { class: "error-text" }, problem.message));
  }
}
