// One webhook: how it fares, what it is told, and the events that its receiver did not take.

import { del, patch, path, post } from "./api.js";
import { address, button, check, confirm, empty, facts, field, h, input } from "./dom.js";
import { count, many, moment } from "./format.js";
import { card, failure, form, heading, listing, row, secret } from "./page.js";
import { ends, state, told } from "./webhooks.js";

const COLUMNS = ["Event", "Tried", "Error", ""];

export function webhook(page) {
  const [id] = page.params;
  const url = (...more) => path("v1", "webhooks", id, ...more);
  const head = h("div", {}, heading(`Webhook ${id}`));
  const [made, figures, settings] = [h("div", {}), h("div", {}), h("div", {})];
  const letters = listing(page, {
    id: "dead_letters", title: "Events that its receiver did not accept", columns: COLUMNS,
    read: (after) => [url("dead-letters"), { after, limit: 50 }],
    line: (letter) => row(COLUMNS, { "data-event": letter.event }, ["jid", `Event ${letter.event}`], ["when", moment(letter.at)], ["break", letter.error],
      ["actions", [button("Send again", "quiet", () => resend(letter.event)), button("Delete", "quiet danger", () => drop(letter.event))]]),
    none: ["None", "The receiver has taken all events."],
  });
  const body = h("div", { class: "grid side", hidden: true }, h("div", { class: "stack" }, figures, letters.element), h("div", { class: "stack" }, made, settings));

  async function read() {
    try {
      const w = await page.get(url());
      head.replaceChildren(heading(h("span", { class: "row" }, h("span", { class: "break" }, `Webhook ${id}`), state(w)), h("span", { class: "mono break" }, w.url),
        button("Try it", "", () => page.attempt(test), { "data-testid": "webhook-test" }),
        button("New secret", "", () => page.attempt(rotate), { "data-testid": "webhook-rotate" }),
        button("Remove", "danger", () => page.attempt(remove), { "data-testid": "webhook-remove" })));
      figures.replaceChildren(card("Figures", facts([
        ["Domain", w.domain ?? "whole node"],
        ["Told of", told(w.states)],
        ["Events behind", count(w.behind)],
        ["Requests that failed since the last success", count(w.failures)],
        w.next_attempt_at && ["Next attempt", moment(w.next_attempt_at)],
        w.last_error && ["Last error", `${w.last_error.error}, ${moment(w.last_error.at)}`],
        ["Dead letters dropped for lack of room", count(w.dead_letters.dropped)],
        ["Created", moment(w.created_at)],
      ])));
      settings.replaceChildren(editor(w));
      body.hidden = false;
    } catch (problem) {
      body.hidden = true;
      head.replaceChildren(heading(`Webhook ${id}`), h("section", { class: "card" }, failure(problem, read)));
    }
  }

  function editor(w) {
    const target = input("webhook-url", { type: "url", required: true, maxlength: 2048, value: w.url });
    const states = ends(w.states);
    const enabled = check("webhook-enabled", "Send events", { checked: w.status === "enabled" });
    return form(page, {
      id: "webhook", title: "Settings", submit: "Save", pointers: { "/url": target, "/states": states.element },
      fields: [field("URL", target), states.element, enabled],
      act: async () => {
        await patch(url(), { url: target.value, states: states.chosen(), enabled: enabled.querySelector("input").checked });
        page.say("The settings are saved.");
        read();
      },
    });
  }

  async function test() {
    const tried = await post(url("test"), {});
    page.say(tried.taken ? `Taken after ${tried.took_ms} ms.` : `Not taken: ${tried.error}`, tried.taken ? "good" : "bad");
  }

  async function rotate() {
    if (!(await confirm(`Make a new secret for webhook ${id}?`, "From the next request on, requests are signed with it.", "New secret"))) return;
    const changed = await patch(url(), { rotate_secret: true });
    made.replaceChildren(secret(page, "New secret", `The secret of webhook ${id}. It is not shown again.`, changed.secret));
  }

  async function remove() {
    if (!(await confirm(`Remove webhook ${id}?`, "Its URL gets no further events, and its dead letters are deleted.", "Remove"))) return;
    await del(url());
    location.hash = address("webhooks");
    page.say(`Webhook ${id} is removed.`);
  }

  const resend = (event) => page.attempt(async () => {
    const sent = await post(url("dead-letters", String(event), "resend"), {});
    page.say(sent.error ? `Not taken: ${sent.error}` : `${many(sent.taken, "event")} taken.`, sent.error ? "bad" : "good");
    letters.reload();
  });

  const drop = (event) => page.attempt(async () => {
    await del(url("dead-letters", String(event)));
    letters.reload();
  });

  page.load(read);
  return h("div", {}, head, body);
}
