// The console's page of autoscalers: what one that runs decided last.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { close, launch, pictures, says, signedIn } from "./browser.mjs";
import { BINARY, Server } from "./harness.mjs";

let server, browser, demand;

before(async () => {
  [server, browser] = [await Server.start(), await launch()];
  demand = createServer((_, answer) => answer.end(JSON.stringify({ load: 7 }))).listen(0, "127.0.0.1");
  await once(demand, "listening");
});
after(async () => {
  demand?.close();
  await browser?.close();
  await server?.end();
});

/** `carillon autoscale run`, with a lease of the node. */
function scaler() {
  const file = join(server.folder, "autoscaler.toml");
  writeFileSync(file, `
log = "${join(server.folder, "decisions.ndjson")}"
[policy]
target = 70
min = 1
max = 8
interval = "200ms"
effect = "200ms"
down = { after = "1s" }
[source]
kind = "http"
url = "http://127.0.0.1:${demand.address().port}/"
demand = "/load"
[driver]
kind = "keda"
listen = "127.0.0.1:0"
[lease]
url = "${server.http}"
key_file = "${join(server.folder, "data", "admin.key")}"
holder = "scaler-1"
`);
  return spawn(BINARY, ["autoscale", "run", "--apply", "--config", file], { stdio: "ignore" });
}

test("what an autoscaler decided last is shown with its reason", async () => {
  const at = await signedIn(browser, server, "#autoscaler");
  await says(at, "No program holds a lease of this node.");
  const program = scaler();
  const ended = once(program, "exit");
  const line = '[data-lease="autoscale"]';
  try {
    await says(at, "scaler-1", line);
    await says(at, "policy demand", line);
    await says(at, "target 70 %", line);
    // Seven units at 70 % want ten; there are to be eight at most.
    await says(at, "8", `${line} td:nth-child(3)`);
    // What it did first is still there when it has nothing to do any more.
    const before = "[data-testid=recent-autoscale]";
    await says(at, "1 → 8", `${before} tbody tr:last-child`);
    await says(at, "over-target", `${before} tbody tr:last-child`);
    await says(at, "at-maximum", `${before} tbody tr:first-child`);
    await pictures(at, "autoscaler");
  } finally {
    program.kill();
    await ended;
  }
  await at.waitForSelector(line, { state: "detached" });
  await close(at);
});
