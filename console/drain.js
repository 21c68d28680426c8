// Draining the node: its sessions end over a time, and how far that has come.

import { del, put, session } from "./api.js";
import { button, confirm, field, h, input } from "./dom.js";
import { count, many } from "./format.js";
import { card, form } from "./page.js";

const PATH = "/v1/admin/drain";

/** The card, for whoever may drain the node. */
export function drain(page) {
  if (session.own?.domain || !session.own?.scopes?.includes("admin")) return null;
  const where = h("div", { "data-testid": "drain" });
  const over = input("drain-over", { type: "number", min: "0", max: "86400", value: "60", required: true });
  const to = input("drain-to", { placeholder: "other.example.net:5222" });
  const idle = form(page, {
    id: "drain",
    submit: "Drain",
    fields: [field("Over how many seconds", over), field("Send clients to", to, "A host, with or without a port. Left empty: they are told that the server shuts down.")],
    pointers: { "/over_ms": over, "/to": to },
    act: async () => {
      if (!(await confirm("Drain this node?", "It takes no new sessions, and the present ones end.", "Drain"))) return;
      show(await put(PATH, { over_ms: Number(over.value) * 1000, to: to.value.trim() || undefined }));
    },
  });
  idle.classList.remove("card");
  let shown = "";

  /** What is so now; what somebody types is left alone. */
  const show = (drain) => {
    if (drain.state === "none") {
      if (shown !== "none") where.replaceChildren(idle);
    } else {
      const text = drain.state === "drained" ? `Drained: none of ${count(drain.total)} left.`
        : `${count(drain.left)} of ${many(drain.total, "session")} left, ${count(Math.ceil(drain.ends_in_ms / 1000))} s to go.`;
      where.replaceChildren(
        h("progress", { max: drain.total || 1, value: drain.total - drain.left, "aria-label": "Sessions that have ended" }),
        h("p", { "data-testid": "drain-text" }, text, drain.to ? ` Clients are sent to ${drain.to}.` : ""),
        h("div", { class: "row end" }, button("Take sessions again", "", cancel, { "data-testid": "drain-cancel" })));
    }
    shown = drain.state;
  };
  const read = () => page.get(PATH).then(show, () => {});
  const cancel = () => page.attempt(async () => {
    await del(PATH);
    page.say("The node takes sessions again.");
    await read();
  });
  page.repeat(1000, read);
  return card("Drain", where);
}
