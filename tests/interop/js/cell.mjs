// A cell of nodes for a test: tests/interop/harness/cell.py runs it, with its engines.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { ROOT, Server, within } from "./harness.mjs";

const PYTHON = [join(ROOT, "target/interop/venv/bin/python"), "python3"].find((path) => path === "python3" || existsSync(path));

export class Cell {
  static async start(nodes) {
    const cell = new Cell();
    const cwd = join(ROOT, "tests/interop");
    cell.process = spawn(PYTHON, ["-m", "harness.cell", String(nodes)], { cwd, stdio: ["pipe", "pipe", "inherit"] });
    cell.exit = once(cell.process, "exit");
    const lines = createInterface({ input: cell.process.stdout });
    const [line] = await Promise.race([once(lines, "line"), cell.exit.then(([code]) => { throw new Error(`no cell: ${code}`); })]);
    cell.nodes = JSON.parse(line).map((node) => Object.assign(new Server(), node));
    return cell;
  }

  /** Has NATS `stop`, or `start` again. */
  nats(what) {
    this.process.stdin.write(`${what}\n`);
  }

  async end() {
    this.process.stdin.end();
    await within("the end of the cell", this.exit);
  }
}
