// One account: its sessions, its topics, its contacts and conversations, what waits for it, and what can be done with it.

import { del, may, path, post, put, session } from "./api.js";
import { address, badge, button, confirm, empty, facts, field, h, input, link } from "./dom.js";
import { count, moment } from "./format.js";
import { compose } from "./compose.js";
import { card, failure, form, heading, secret } from "./page.js";
import { contacts, conversations } from "./people.js";
import { waiting } from "./notifications.js";
import { sessionTable } from "./sessions.js";

export function device(page) {
  const [jid] = page.params;
  const [id, domain] = jid.includes("@") ? jid.split("@") : [jid, session.domain];
  const query = { domain };
  const url = (...more) => path("v1", "devices", id, ...more);
  const [head, made, about, live, topics, wait, people, talks] = Array.from({ length: 8 }, () => h("div", {}));
  const body = h("div", { class: "grid side" },
    h("div", { class: "stack" }, made, about, live, wait, talks),
    h("div", { class: "stack" },
      may("send") && compose(page, { title: "Send to this device", target: `${id}@${domain}`, query, sent }), topics, people));

  function sent([result]) {
    if (result) made.replaceChildren(h("section", { class: "notice calm", role: "status" }, h("span", {}, "The notification was accepted."), link("Follow it", "notifications", result.id)));
    load();
  }

  async function load() {
    try {
      const d = await page.get(url(), query);
      head.replaceChildren(top(d));
      about.replaceChildren(card("Device", facts([
        ["JID", h("span", { class: "mono" }, d.jid)],
        ["Sessions now", count(d.sessions ?? 0)],
        ["Notifications waiting", count(d.pending)],
        ["Enrolled", moment(d.created_at)],
        d.disabled_at && ["Disabled", moment(d.disabled_at)],
      ])));
      topics.replaceChildren(following(page, d, { url, query, load }));
      body.hidden = false;
    } catch (problem) {
      head.replaceChildren(heading(id));
      body.hidden = true;
      head.append(h("section", { class: "card" }, failure(problem, load)));
      return;
    }
    await Promise.all([showSessions(), may("chat") && contacts(page, people, `${id}@${domain}`), may("chat") && conversations(page, talks, `${id}@${domain}`), may("send") && waiting(page, wait, `${id}@${domain}`, query)]);
  }

  async function showSessions() {
    if (!may("admin")) return;
    const answer = await page.attempt(() => page.get("/v1/admin/sessions", { ...query, account: id, limit: 200 }));
    if (!answer) return;
    live.replaceChildren(card("Sessions", answer.sessions.length ? sessionTable(page, answer.sessions, load) : empty("Not connected", "The device has no session now.")));
  }

  function top(d) {
    const enabled = d.state === "enabled";
    const name = h("span", { class: "row" }, h("span", { class: "break" }, d.id), badge(d.state, enabled ? "good" : "bad"));
    return heading(name, h("span", { class: "mono break" }, d.jid),
      button("New secret", "", () => page.attempt(rotate), { "data-testid": "device-rotate" }),
      button(enabled ? "Disable" : "Enable", "", () => page.attempt(() => toggle(enabled)), { "data-testid": "device-toggle" }),
      button("Remove", "danger", () => page.attempt(remove), { "data-testid": "device-remove" }));
  }

  async function rotate() {
    if (!(await confirm(`Make a new secret for ${id}?`, "The old secret stops working and the device's sessions end.", "New secret"))) return;
    const answer = await post(url("rotate"), {}, query);
    made.replaceChildren(secret(page, "New secret", `The secret of ${id}@${domain}. It is not shown again.`, answer.secret));
    load();
  }

  async function toggle(enabled) {
    if (enabled && !(await confirm(`Disable ${id}?`, "Its sessions end and it cannot log in until it is enabled again.", "Disable"))) return;
    await post(url(enabled ? "disable" : "enable"), undefined, query);
    page.say(enabled ? `${id} is disabled.` : `${id} is enabled.`);
    load();
  }

  async function remove() {
    if (!(await confirm(`Remove ${id}?`, "Its sessions end, and its subscriptions and the notifications waiting for it are deleted.", "Remove"))) return;
    await del(url(), query);
    location.hash = address("devices");
    page.say(`${id} is removed.`);
  }

  page.load(load);
  return h("div", {}, head, body);
}

/** The topics that a device follows. */
function following(page, d, { url, query, load }) {
  const name = input("follow-topic", { required: true, placeholder: "news/today" });
  const leave = (topic) => page.attempt(async () => {
    await del(url("subscriptions", topic), query);
    load();
  });
  const list = [...d.topics].sort();
  return h("div", { class: "stack" },
    card("Topics it follows", list.length
      ? h("ul", { class: "lines" }, list.map((topic) => h("li", { class: "row between" }, link(topic, "topics", topic), button("Unsubscribe", "quiet", () => leave(topic)))))
      : empty("No topics", "The device follows no topic.")),
    form(page, {
      id: "follow", submit: "Subscribe", fields: field("Subscribe to a topic", name),
      act: async () => {
        await put(url("subscriptions", name.value), undefined, query);
        load();
      },
    }));
}
