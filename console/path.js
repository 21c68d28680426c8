// The path of a notification: its states, with the time of each.

import { del, path as url } from "./api.js";
import { badge, button, confirm, h, link } from "./dom.js";
import { exact } from "./format.js";

export const STATES = {
  scheduled: ["Scheduled", "Waiting for its time", ""],
  accepted: ["Accepted", "The node took it", ""],
  stored: ["Stored", "On disk: it survives a crash", "accent"],
  sent: ["Sent", "Handed to a connection of the device", "accent"],
  acknowledged: ["Acknowledged", "The device has it", "good"],
  expired: ["Expired", "Its time to live ended before the device acknowledged it", "warn"],
  replaced: ["Replaced", "A newer one with the same collapse key replaced it", "warn"],
  cancelled: ["Cancelled", "Cancelled before it was sent", "warn"],
  dropped: ["Dropped", "It will not be delivered", "bad"],
  opened: ["Opened", "Its link was followed", "good"],
};
const REASONS = {
  "unknown-device": "There is no such device",
  "not-connected": "The device was not connected",
  "not-active": "Nobody was using the device",
  "connection-lost": "The connection was lost before the device acknowledged it",
  "queue-full": "The device reads too slowly: its queue was full",
  "device-deleted": "The device was removed",
  module: "A module of the server refused it",
};
const BY = {
  "stream-management": "Confirmed by the client's stream management",
  receipt: "Confirmed by the client's receipt",
  link: "Confirmed by who followed its link",
  socket: "Confirmed by the socket alone: the client confirms nothing",
};
const SERVICES = { web_push: "Web Push", apns: "APNs", fcm: "FCM", webhook: "Its webhook" };
const PUSHED = {
  taken: "took it",
  failed: "did not take it: it is tried again",
  refused: "refused it",
  gone: "says that the app is gone: its registration has ended",
};
const ENDS = ["acknowledged", "expired", "replaced", "cancelled", "dropped", "opened"];
const WAY = ["accepted", "stored", "sent", "acknowledged"];

export const ended = (n) => ENDS.includes(n.state);
export const cancellable = (n) => ["scheduled", "accepted", "stored"].includes(n.state);
export const pill = (state) => badge(STATES[state]?.[0].toLowerCase() ?? state, STATES[state]?.[2]);

/** Newer news of a notification, unless they are older than what is known. */
export function merge(known, news) {
  return known && ended(known) && !ended(news) ? known : { ...known, ...news };
}

/** The steps it took and, while it is on its way, those before it. */
export function steps(n) {
  const begun = n.accepted_at ? Date.parse(n.accepted_at) : null;
  const times = { accepted: n.accepted_at, stored: n.stored_at, sent: n.sent_at, acknowledged: n.acknowledged_at };
  const reached = (name) => Boolean(times[name]) || n.state === name;
  const stopped = ended(n) && n.state !== "acknowledged" && n.state !== "opened";
  const rows = WAY.filter((name) => !stopped || reached(name)).map((name) =>
    step(name, name === "acknowledged" ? BY[n.acknowledged_by] : null, times[name], begun, reached(name)));
  for (const push of n.pushes ?? []) {
    // Behind what was before it.
    const later = rows.findIndex((row) => !row.dataset.state || (times[row.dataset.step] ?? "") > push.sent_at);
    rows.splice(later < 0 ? rows.length : later, 0, pushed(push, begun));
  }
  if (n.send_at) {
    const due = step("scheduled", null, n.send_at, null, true);
    rows.splice(1, 0, due);
  }
  if (n.opened_at) rows.push(step("opened", n.opened_by && `Its link was followed: ${n.opened_by}`, n.opened_at, begun, true));
  if (stopped) {
    const last = step(n.state, REASONS[n.reason], n.ended_at, begun, true);
    last.classList.add("ended");
    rows.push(last);
  } else {
    rows[rows.findLastIndex((row) => row.dataset.state) + 1]?.classList.add("waiting");
  }
  return rows;
}

function step(name, why, at, begun, reached) {
  const [title, text] = STATES[name];
  return line(name, title, why ?? text, at, begun, reached ? name : null);
}

/** The pushes to one app. */
function pushed(push, begun) {
  const said = `${SERVICES[push.channel] ?? push.channel} ${PUSHED[push.state] ?? push.state}`;
  const why = said + (push.reason ? ` (${push.reason})` : "") + (push.requests > 1 ? `, ${push.requests} requests` : "");
  const made = line("push", `Pushed to ${push.node}`, why, push.answered_at, begun, push.state);
  if (push.state === "refused" || push.state === "gone") made.classList.add("ended");
  return made;
}

function line(name, title, why, at, begun, state) {
  const after = at && begun !== null && name !== "accepted" ? `+${apart(Math.max(0, Date.parse(at) - begun))}` : "";
  return h("li", { "data-step": name, "data-state": state },
    h("div", { class: "step" }, title, h("span", { class: "why" }, why)),
    h("div", { class: "when" }, at ? (after || exact(at)) : "", at && after ? h("small", {}, exact(at)) : null));
}

/** A time between two states. */
function apart(ms) {
  return ms < 10_000 ? `${ms} ms` : ms < 600_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 60_000)} min`;
}

/** Whose it is, how far it has come, the button to cancel it and, where it is `named`, its id. */
export function title(page, n, learn, named = true) {
  const cancel = async () => {
    if (!(await confirm("Cancel this notification?", `It will not be delivered to ${n.to}.`, "Cancel it"))) return;
    await page.attempt(async () => {
      learn(await del(url("v1", "notifications", n.id)));
      page.say("The notification is cancelled.");
    });
  };
  return h("div", { class: "path-head" },
    h("div", { class: "row between" }, h("div", { class: "who-for" }, link(n.to, "devices", n.to), " ", pill(n.state)),
      cancellable(n) && button("Cancel", "quiet danger", cancel, { "data-testid": "cancel" })),
    named && h("div", { class: "mono muted" }, link(n.id, "notifications", n.id)));
}
