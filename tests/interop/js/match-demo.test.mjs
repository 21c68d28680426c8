// The demo of real-time matches, in two windows of a real browser.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { close, launch, open, pictures } from "./browser.mjs";
import { Server } from "./harness.mjs";

let server, browser;

before(async () => { [server, browser] = [await Server.start({ "matches.demo": true }), await launch()]; });
after(async () => {
  await browser?.close();
  await server?.end();
});

const PATH = "/demo/match";
const says = (page, text) => page.waitForFunction((text) => document.querySelector("#said").textContent.includes(text), text);
const tick = async (page) => Number(await page.textContent("#figure-tick"));
const reaches = (page, tick) => page.waitForFunction((tick) => Number(document.querySelector("#figure-tick").textContent) >= tick, tick);
const own = async (page) => JSON.parse(await page.getAttribute("#figures", "data-own"));
const connection = (page, state) => page.waitForSelector(`#figures[data-connection="${state}"]`, { state: "attached" });

/** Hashes of the states after the last ticks, by tick. */
async function hashes(page) {
  return new Map((await page.getAttribute("#figures", "data-hashes")).split(" ").map((text) => text.split(":")));
}

/** Both have played the same ticks, and have the same states after each. */
async function agree(...pages) {
  const last = Math.max(...(await Promise.all(pages.map(tick))));
  await Promise.all(pages.map((page) => reaches(page, last + 5)));
  const [one, other] = await Promise.all(pages.map(hashes));
  const both = [...one.keys()].filter((tick) => other.has(tick));
  assert.ok(both.length >= 5, `${both.length} ticks that both have`);
  for (const tick of both) assert.equal(one.get(tick), other.get(tick), `tick ${tick}`);
}

/** Two windows that play with each other. */
async function windows() {
  const [one, other] = [await open(browser, server, PATH), await open(browser, server, PATH)];
  await one.click("#play");
  await one.waitForSelector("#waiting:not([hidden])");
  await other.click("#play");
  await Promise.all([one, other].map((page) => reaches(page, 30)));
  return [one, other];
}

test("two windows play, lose the connection, come back, and agree", async () => {
  const [one, other] = await windows();
  const before = await own(one);
  await one.keyboard.down("ArrowUp");
  await other.keyboard.down("KeyS");
  await Promise.all([one, other].map(async (page) => reaches(page, (await tick(page)) + 20)));
  assert.ok((await own(one)).y < before.y, "it moved up");
  assert.ok((await own(other)).y > before.y, "the other moved down");
  await agree(one, other);
  // A click of a mouse, or a finger, leads somewhere as well.
  await one.keyboard.up("ArrowUp");
  const field = await one.locator("#field").boundingBox();
  await one.mouse.move(field.x + 5, field.y + field.height - 5);
  await one.mouse.down();
  const high = await own(one);
  await reaches(one, (await tick(one)) + 15);
  await one.mouse.up();
  assert.ok((await own(one)).y > high.y, "it follows the pointer");

  await pictures(other, "match-demo");
  await other.click("#cut");
  await connection(other, "away");
  await says(other, "You are cut off");
  await says(one, "The other player lost the connection");
  const left = await tick(other);
  await reaches(one, left + 20);
  assert.ok((await tick(other)) <= left + 1, "nothing comes meanwhile");
  await pictures(other, "match-demo-cut");
  await other.click("#back");
  await connection(other, "joined");
  await agree(one, other);

  // A page that is loaded again takes its seat again, and computes the game from its beginning.
  await other.reload();
  await connection(other, "joined");
  await agree(one, other);
  const rtt = await other.waitForFunction(() => document.querySelector("#figure-rtt").textContent.match(/^([\d.]+) ± [\d.]+ ms$/)?.[1]);
  assert.ok(Number(await rtt.jsonValue()) > 0);
  await one.click("#leave");
  await says(one, "You gave up.");
  await says(other, "The other player left: you won.");
  await pictures(other, "match-demo-over");
  await other.click("#again");
  await other.waitForSelector("#lobby:not([hidden])");
  await close(one);
  await close(other);
});

test("a bot plays with whoever is alone, to the end", { timeout: 150_000 }, async () => {
  const page = await open(browser, server, PATH);
  await pictures(page, "match-demo-lobby");
  await page.click("#play-bot");
  await reaches(page, 100);
  await page.keyboard.down("ArrowLeft");
  await reaches(page, 300);
  // Who stands in a corner is it, or is caught by then.
  await says(page, "You are it");
  await page.reload();
  await page.waitForSelector("#again:not([hidden])", { timeout: 90_000 });
  assert.match(await page.textContent("#said"), /^(You won|The other player won|Nobody won)\.$/);
  assert.equal(await tick(page), 1200);
  await close(page);
});

test("nobody waits for who has gone, and a seat has one window", async () => {
  const gone = await open(browser, server, PATH);
  await gone.click("#play");
  await gone.waitForSelector("#waiting:not([hidden])");
  const withdrawn = gone.waitForResponse((response) => response.request().method() === "DELETE");
  await gone.click("#stop");
  assert.equal((await withdrawn).status(), 204);
  await gone.waitForSelector("#lobby:not([hidden])");
  const [one, other] = await windows();
  // As duplicating a tab does.
  const twin = await other.context().newPage();
  await twin.goto(server.http + PATH);
  await twin.evaluate((kept) => sessionStorage.setItem("carillon-demo-seats", kept), await other.evaluate(() => sessionStorage.getItem("carillon-demo-seats")));
  await twin.reload();
  await says(other, "Another window took this seat.");
  await agree(one, twin);
  await close(one);
  await close(other);
  await close(gone);
});
