// The queues that the node takes messages from: how far it is, why messages became dead letters, and sending these again.

import { path, post } from "./api.js";
import { badge, button, confirm, empty, h, link } from "./dom.js";
import { bytes, count, duration, exact, many, moment } from "./format.js";
import { failure, heading, row, table } from "./page.js";

const KINDS = { pulling: "good", starting: "", resting: "", behind: "warn", away: "bad", wrong: "bad" };
const COLUMNS = ["Queue", "State", "Waiting", "Oldest", "Not settled", "Taken", "Put back", "Dead letters"];
const DEAD_COLUMNS = ["Message", "Why", "Body", "Sent", "Dead since"];
const SHOWN_MAX = 100;

export function queues(page) {
  const where = h("div", {}, h("p", { class: "loading" }, "Loading…"));
  const load = async () => {
    try {
      const { queues } = await page.get("/v1/queues");
      where.replaceChildren(queues.length
        ? table("queues", COLUMNS, queues.map(line))
        : empty("No queues", "The settings name none: see “intake” in the documentation of the settings."));
    } catch (problem) {
      where.replaceChildren(failure(problem, load));
    }
  };
  page.repeat(2000, load);
  return h("div", {},
    heading("Queues", "Durable queues that this node takes notifications and items from. Counts are of this node, since its start. Updated every two seconds."),
    h("section", { class: "card" }, where));
}

function line(queue) {
  const age = queue.oldest && Math.max(0, Date.now() - new Date(queue.oldest));
  const [size, unit] = bytes(queue.in_flight_bytes);
  return row(COLUMNS, { "data-queue": queue.name },
    ["", h("strong", {}, link(queue.name, "queues", queue.name))],
    ["", [badge(queue.state, KINDS[queue.state]), queue.why && h("div", { class: "muted small" }, queue.why)]],
    ["num", counted(queue.waiting)],
    ["num", queue.oldest ? duration(age) : "–", queue.oldest && exact(queue.oldest)],
    ["num", [counted(queue.unsettled), h("div", { class: "muted small" }, `${count(queue.in_flight)} here, ${size} ${unit}`)]],
    ["num", [count(queue.accepted), queue.repeated > 0 && h("div", { class: "muted small" }, `${count(queue.repeated)} of them known`)]],
    ["num", reasons(queue.put_back)],
    ["num", [counted(queue.dead), reasons(queue.refused, "of them here")]]);
}

/** What the queue itself counts; it may not have answered yet. */
const counted = (n) => (n === undefined ? "–" : count(n));

/** How many for each reason; with `whose`, below a number that is not theirs alone. */
function reasons(counts, whose) {
  const all = Object.entries(counts).sort(([, a], [, b]) => b - a);
  const total = all.reduce((sum, [, n]) => sum + n, 0);
  const parts = all.map(([code, n]) => h("div", { class: "muted small" }, `${code}: ${count(n)}`));
  if (whose) return total > 0 ? [h("div", { class: "muted small" }, `${count(total)} ${whose}`), parts] : null;
  return [count(total), parts];
}

/** A queue's dead letters. */
export function queue(page) {
  const [name] = page.params;
  const where = h("div", {}, h("p", { class: "loading" }, "Loading…"));
  const note = h("span", { class: "muted small" });
  const again = button("Send all again", "", () => redrive(), { "data-testid": "queue-redrive", disabled: true });
  const at = (...more) => path("v1", "queues", name, ...more);
  let shown = [];

  async function load() {
    try {
      shown = (await page.get(at("dead"), { max: SHOWN_MAX })).dead;
      again.disabled = shown.length === 0;
      where.replaceChildren(shown.length
        ? table("dead", DEAD_COLUMNS, shown.map(letter))
        : empty("No dead letters", "A message that is wrong, or that is refused for good, becomes one."));
      note.textContent = shown.length === SHOWN_MAX ? `The oldest ${SHOWN_MAX}.` : "";
    } catch (problem) {
      again.disabled = true;
      where.replaceChildren(failure(problem, load));
    }
  }

  const redrive = () => page.attempt(async () => {
    const text = "They become messages of the queue again, under the names that they had: what was done of them is not done twice. One that is still wrong becomes a dead letter again.";
    if (!(await confirm(`Send ${many(shown.length, "dead letter")} again?`, text, "Send again"))) return;
    const { redriven } = await post(at("redrive"), undefined, { max: shown.length });
    page.say(`${many(redriven, "message")} sent again.`);
    await load();
  });

  page.load(load);
  return h("div", {},
    heading(name, "Messages of this queue that became dead letters, oldest first, and why. They stay where they are until they are sent again or expire.", again),
    h("section", { class: "card" }, where, h("div", { class: "card-foot" }, note)),
    h("p", {}, link("All queues", "queues")));
}

function letter(dead) {
  const [size, unit] = bytes(dead.bytes);
  return row(DEAD_COLUMNS, { "data-letter": dead.letter },
    ["id", h("code", {}, dead.id)],
    ["", [dead.code && h("code", {}, dead.code), h("div", { class: "muted small" }, dead.detail ?? "The queue gave it up.")]],
    ["", h("details", {}, h("summary", {}, `${size} ${unit}`), h("pre", {}, dead.body))],
    ["when", dead.sent_at ? moment(dead.sent_at) : "–", dead.sent_at && exact(dead.sent_at)],
    ["when", moment(dead.died_at), exact(dead.died_at)]);
}
