// What the tests of the console stand on: Chromium, pages that note what goes wrong on them, and pictures to look at.

import assert from "node:assert/strict";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";

import { chromium } from "playwright-core";

import { DEADLINE_MS, ROOT } from "./harness.mjs";

const EXECUTABLE = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(
  (path) => path && existsSync(path),
);
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const OUT = join(ROOT, "target/interop");
export const WIDTHS = [[1280, 900], [390, 844]];

/** A browser with a fresh profile: its own folder is a temporary one. */
export function launch() {
  mkdirSync(OUT, { recursive: true });
  return chromium.launch({ executablePath: EXECUTABLE, headless: true, args: FLAGS });
}

/** A page of the node, and all that went wrong on it. */
export async function open(browser, server, path = "/console") {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  page.setDefaultTimeout(DEADLINE_MS);
  page.wrong = [];
  page.on("console", (message) => message.type() === "error" && page.wrong.push(message.text()));
  page.on("pageerror", (error) => page.wrong.push(String(error)));
  page.on("requestfailed", (request) => {
    // Requests end when their page is left.
    if (request.failure().errorText !== "net::ERR_ABORTED") page.wrong.push(`${request.url()}: ${request.failure().errorText}`);
  });
  await page.goto(server.http + path);
  return page;
}

/** The same, signed in, at an address of the console. */
export async function signedIn(browser, server, hash = "") {
  const page = await open(browser, server, `/console${hash}`);
  await page.fill("#key", server.key);
  await page.click("#sign-in");
  await page.waitForSelector("#shell:not([hidden])");
  return page;
}

/** Goes to a page of the console by its address. */
export const go = (page, hash) => page.evaluate((hash) => { location.hash = hash; }, hash);

/** Until the page says this. */
export async function says(page, text, where = "#main") {
  await page.waitForFunction(([where, text]) => document.querySelector(where)?.innerText.includes(text), [where, text]);
}

/** Pictures of a page, wide and narrow, light and dark; nothing of it is wider than the window. */
export async function pictures(page, name) {
  for (const [width, height] of WIDTHS) {
    await page.setViewportSize({ width, height });
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      await page.evaluate(() => scrollTo(0, 0));
      assert.deepEqual(await page.evaluate(faint), [], `${name}, ${colorScheme}: text that is hard to read`);
      await page.screenshot({ path: join(OUT, `console-${name}-${width}-${colorScheme}.png`), fullPage: true, animations: "disabled" });
    }
    const wide = await page.evaluate(() => {
      const beyond = [...document.body.querySelectorAll("*")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1);
      const boxed = (e) => e.closest(".table-wrap, .toasts, pre");
      return beyond.filter((e) => !boxed(e)).map((e) => `${e.tagName} ${e.className}`);
    });
    assert.deepEqual(wide, [], `${name} at ${width} px: wider than the window`);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name} scrolls sideways at ${width} px`);
  }
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 1280, height: 900 });
}

/** The texts whose contrast with what is behind them is below 4.5 (WCAG 2.2 §1.4.3). Runs in the page. */
function faint() {
  const numbers = (color) => {
    const [r, g, b, a = 1] = color.match(/[\d.]+/g).map(Number);
    return color.startsWith("color(srgb") ? [r * 255, g * 255, b * 255, a] : [r, g, b, a];
  };
  const light = (color) => {
    const [r, g, b] = numbers(color).map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = getComputedStyle(at).backgroundColor;
      if (numbers(color)[3] > 0.9) return color;
    }
    return "rgb(255, 255, 255)";
  };
  const texts = [...document.body.querySelectorAll("*")].filter((e) => e.checkVisibility() && !e.closest(":disabled, .stale, option") &&
    [...e.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim()));
  return texts.flatMap((e) => {
    const [one, other] = [light(getComputedStyle(e).color), light(ground(e))];
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    return contrast < 4.5 ? [`${contrast.toFixed(2)} ${e.tagName}.${e.className}: ${e.textContent.slice(0, 40)}`] : [];
  });
}

/** Closes a page on which nothing may have gone wrong but, where it is `asking`, what it was refused. */
export async function close(page, asking = false) {
  assert.deepEqual(page.wrong.filter((line) => !(asking && /status of (404|409|422)/.test(line))), []);
  await page.context().close();
}
