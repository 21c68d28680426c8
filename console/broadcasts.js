// Broadcasts: sent to all accounts of the domain, followed and steered while they run.

import { del, patch, path, post, session } from "./api.js";
import { badge, button, check, confirm, empty, field, h, input, select } from "./dom.js";
import { count, day, many, moment } from "./format.js";
import { card, failure, form, heading, payload, row, table } from "./page.js";

const AUDIENCES = [["always", "Always: also who logs in before it expires"], ["connected", "Connected: who is there"], ["active", "Active: who is using a device"]];
const COLUMNS = ["Broadcast", "Progress", "Acknowledged", "Accepted", ""];
const LOOK = { running: "good", paused: "warn", aborted: "bad", finished: "" };
/** How often the list is read. */
const LOOK_MS = 1000;
const LISTED = 50;
const all = () => path("v1", "domains", session.domain, "notifications");
const one = (b) => path("v1", "domains", session.domain, "notifications", b.id);

export function broadcasts(page) {
  const list = h("div", { "aria-busy": "true" }, h("p", { class: "loading" }, "Loading…"));
  let shown = "";

  async function read() {
    let answer;
    try {
      answer = await page.get(all(), { limit: LISTED });
    } catch (problem) {
      shown = "";
      return list.replaceChildren(failure(problem, read));
    }
    // What did not change keeps its focus.
    const text = JSON.stringify(answer.broadcasts);
    if (text === shown) return undefined;
    shown = text;
    list.removeAttribute("aria-busy");
    return list.replaceChildren(answer.broadcasts.length
      ? table("broadcasts", COLUMNS, answer.broadcasts.map(line))
      : empty("No broadcasts", "Send one to all accounts of the domain with the form."));
  }

  const change = (act, said) => page.attempt(async () => {
    await act();
    page.say(said);
    await read();
  });
  const abort = (b) => page.attempt(async () => {
    if (!(await confirm("Abort this broadcast?", "Who was not given it is not given it any more. What is on its way to devices is not taken back.", "Abort"))) return;
    await change(() => del(one(b)), "The broadcast is aborted.");
  });

  function line(b) {
    const is = h("span", { class: badge("", LOOK[b.state]).className, "data-testid": "broadcast-state" }, b.state);
    return row(COLUMNS, { "data-broadcast": b.id },
      ["jid", [h("code", { class: "small" }, b.id), h("div", { class: "muted small" }, about(b))]],
      ["", [is, bar(b)]],
      ["num", count(b.acknowledged), `Given ${many(b.given, "time")}`],
      ["when", day(b.accepted_at), moment(b.accepted_at)],
      ["actions", actions(b)]);
  }

  function actions(b) {
    if (b.state !== "running" && b.state !== "paused") return "";
    const is = b.state === "paused";
    const toggle = () => change(() => patch(one(b), { paused: !is }), is ? "The broadcast goes on." : "The broadcast is paused.");
    return [button(is ? "Resume" : "Pause", "quiet", toggle), button("Abort", "quiet danger", () => abort(b))];
  }

  page.repeat(LOOK_MS, read);
  return h("div", {}, heading("Broadcasts", `Notifications for all accounts of ${session.domain}.`),
    h("div", { class: "grid side wide-left" }, card("Broadcasts", list), creation(page, read)));
}

/** How it is given, in words. */
function about(b) {
  return [b.audience, b.topic && `followers of ${b.topic}`, b.rate && `${count(b.rate)}/s`,
    b.not_before && `from ${moment(b.not_before)}`, b.window && `${b.window.from}–${b.window.to} UTC${b.window.utc_offset}`].filter(Boolean).join(" · ");
}

/** How many of those that were given it have acknowledged it. */
function bar(b) {
  const most = Math.max(b.given, b.acknowledged, 1);
  return h("progress", { max: most, value: b.acknowledged, "aria-label": `${count(b.acknowledged)} of ${count(most)} acknowledged` });
}

function creation(page, sent) {
  const text = h("textarea", { id: "broadcast-payload", "data-testid": "broadcast-payload", required: true, spellcheck: "false" });
  text.value = '{ "title": "Hello", "body": "Maintenance begins at 10:00." }';
  const audience = select("broadcast-audience", AUDIENCES, "always");
  const ttl = h("input", { id: "broadcast-ttl", type: "number", min: 1, max: 2592000, placeholder: "Default", inputmode: "numeric" });
  const rate = h("input", { id: "broadcast-rate", type: "number", min: 1, max: 1000000, placeholder: "As fast as can be", inputmode: "numeric" });
  const topic = input("broadcast-topic", { placeholder: "None", autocapitalize: "none" });
  const dry = check("broadcast-dry-run", "Count only, send nothing");
  const body = () => ({
    audience: audience.value, ...payload(text.value), ...(ttl.value && { ttl: Number(ttl.value) }),
    ...(rate.value && { rate: Number(rate.value) }), ...(topic.value && { topic: topic.value.trim() }),
  });

  async function act() {
    const rehearsal = await post(all(), { ...body(), dry_run: true });
    const reached = `${many(rehearsal.reached_now, "account")} would be given it now`;
    if (dry.querySelector("input").checked) {
      page.say(rehearsal.accounts === undefined ? `${reached}.` : `${reached}, of ${count(rehearsal.accounts)} in all.`);
      return;
    }
    if (!(await confirm(`Send to all accounts of ${session.domain}?`, `${reached}.`, "Send"))) return;
    await post(all(), body());
    page.say("The broadcast is accepted.");
    await sent();
  }

  return form(page, {
    id: "broadcast", title: "New broadcast", submit: "Send", beside: dry, act,
    pointers: { "/payload": text, "/payload_xml": text, "/ttl": ttl, "/rate": rate, "/topic": topic },
    fields: [field("Payload", text, "Any JSON value, or one XML element in a namespace of its own."), field("Audience", audience),
      h("div", { class: "fields" }, field("Time to live (s)", ttl), field("Deliveries per second", rate), field("Only followers of", topic))],
  });
}
