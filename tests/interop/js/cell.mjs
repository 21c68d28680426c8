// What programs of tests/interop/harness run for a test: a cell of nodes with its engines, and a queue.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { ROOT, Server, within } from "./harness.mjs";

const PYTHON = [join(ROOT, "target/interop/venv/bin/python"), "python3"].find((path) => path === "python3" || existsSync(path));

/** A program of the harness, which ends when its standard input does. */
class Program {
  /** Starts it; what its first line says. */
  async run(module, ...args) {
    const cwd = join(ROOT, "tests/interop");
    this.process = spawn(PYTHON, ["-m", module, ...args.map(String)], { cwd, stdio: ["pipe", "pipe", "inherit"] });
    this.exit = once(this.process, "exit");
    const lines = createInterface({ input: this.process.stdout });
    const [line] = await Promise.race([once(lines, "line"), this.exit.then(([code]) => { throw new Error(`${module} ended with ${code}`); })]);
    return JSON.parse(line);
  }

  tell(line) {
    this.process.stdin.write(`${line}\n`);
  }

  async end() {
    this.process.stdin.end();
    await within("the end of a program", this.exit);
  }
}

export class Cell extends Program {
  static async start(nodes) {
    const cell = new Cell();
    cell.nodes = (await cell.run("harness.cell", nodes)).map((node) => Object.assign(new Server(), node));
    return cell;
  }

  /** Has NATS `stop`, or `start` again. */
  nats(what) {
    this.tell(what);
  }
}

/** A stream of NATS JetStream, and who publishes to it. */
export class Stream extends Program {
  static async start(name, subject) {
    const stream = new Stream();
    const { url } = await stream.run("harness.jetstream", name, subject);
    return Object.assign(stream, { name, url });
  }

  publish(message) {
    this.tell(JSON.stringify(message));
  }
}
