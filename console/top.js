// The accounts that cost the node most: by what their clients send, the time that takes, and what waits for them.

import { empty, h, select } from "./dom.js";
import { bytes, count, duration } from "./format.js";
import { failure, heading, row, table } from "./page.js";

const ORDERS = [["messages", "Messages"], ["bytes", "Bytes"], ["cpu", "Time"], ["queue", "Queue"]];
const COLUMNS = ["Account", "Messages", "Bytes", "Time", "Queue"];
const LEAD = "The accounts whose clients send most to this node, or for whose clients most waits: of the last minute, and up to another one.";

export function top(page) {
  const by = select("top-by", ORDERS, "messages");
  const list = h("div", {}, h("p", { class: "loading" }, "Loading…"));

  async function load() {
    try {
      const { accounts } = await page.get(`/v1/top?by=${by.value}&limit=20`);
      list.replaceChildren(accounts.length ? table("top", COLUMNS, accounts.map(line)) : empty("Nobody", "No account sent anything, or nothing waits for any."));
    } catch (problem) {
      list.replaceChildren(failure(problem, load));
    }
  }

  by.addEventListener("change", load);
  page.repeat(2000, load);
  const label = h("label", { for: "top-by" }, "Sort by ", by);
  return h("div", {}, heading("Top", LEAD, label), h("section", { class: "card" }, list));
}

function line(heavy) {
  return row(COLUMNS, { "data-account": heavy.account },
    ["", h("strong", {}, heavy.account), `Counted for ${duration(heavy.counted_ms)}`],
    ["num", count(heavy.messages)], ["num", bytes(heavy.bytes).join(" ")],
    ["num", `${heavy.cpu_ms.toFixed(1)} ms`], ["num", bytes(heavy.queue_bytes).join(" ")]);
}
