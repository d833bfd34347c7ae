// Opens pages in a real browser: every panel, at two widths, light and dark, by mouse and by keyboard,
// and what a name in a trace may not do. `make test-browser` runs it.
//
//   node pages.mjs CHROMIUM DIRECTORY
//
// DIRECTORY has the pages, and takes a screenshot of each.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [chromium, directory] = [process.argv[2], resolve(process.argv[3])];
const require = createRequire(join(directory, "package.json"));
const puppeteer = (await import(pathToFileURL(require.resolve("puppeteer-core")))).default;
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const OF_TRACE = (at) => [`#machine-${at} .cpu`, `#tasks-${at} polyline`, `#residency-${at} td.heat`, `#moves-${at} td`];
const PAGES = {
  trace: ["#verdict-0 .sentence", "#result-0 table", "#timeline canvas.rows", "#decisions-0 details", "#latency path", ...OF_TRACE(0)],
  two: ["#verdict-0 .sentence", "#result-0 table", "#timeline canvas.rows", "#latency path", ...OF_TRACE(0), ...OF_TRACE(1)],
  compare: ["#verdict-0 .sentence", "#result-0 td", "#verdict-1", "#timeline canvas.rows"],
  advise: ["#verdict-0 .sentence", "#result-0 table", "#result-1 table", "#timeline canvas.rows", ...OF_TRACE(0)],
  reproduce: ["#verdict-0 .sentence", "#result-0 table", "#scatter circle"],
  evil: ["#verdict-0 .sentence", "#timeline canvas.rows", "#residency-0 td.heat"],
};

const browser = await puppeteer.launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-gpu"] });
let checks = 0;

async function open(name, width, scheme) {
  const page = await browser.newPage();
  const [requests, errors] = [[], []];
  page.on("request", (request) => requests.push(request.url()));
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  await page.setViewport({ width, height: 1000 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.goto(pathToFileURL(join(directory, `${name}.html`)));
  await page.waitForSelector("#main[aria-busy=false]", { timeout: 60_000 });
  await settled(page);
  return { page, requests, errors };
}

const settled = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done)))));
const text = (page, selector) => page.$eval(selector, (found) => found.textContent);

async function looks(name, width, scheme) {
  const { page, requests, errors } = await open(name, width, scheme);
  assert.deepEqual(errors, [], `${name}: errors`);
  assert.equal(requests.filter((url) => !url.startsWith("file:") && !url.startsWith("blob:")).length, 0, `${name}: ${requests}`);
  for (const selector of PAGES[name]) assert.ok(await page.$(selector), `${name} at ${width}, ${scheme}: no ${selector}`);
  assert.equal(await page.$eval("html", (html) => html.dataset.theme), scheme);
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  assert.ok(overflow <= 0, `${name} at ${width}: ${overflow} pixels too wide`);
  for (const canvas of await page.$$("canvas.rows")) assert.ok((await colours(canvas)) > 2, `${name}: nothing is drawn`);
  await page.screenshot({ path: join(directory, `${name}-${width}-${scheme}.png`), fullPage: true });
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => axe.run());
  const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  const told = serious.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
  assert.deepEqual(told, [], `${name} at ${width}, ${scheme}: accessibility`);
  checks++;
  await page.close();
}

const colours = (canvas) => canvas.evaluate((one) => {
  const { data } = one.getContext("2d").getImageData(0, 0, one.width, one.height);
  return new Set(new Uint32Array(data.buffer)).size;
});

async function timelineIsUsed() {
  const { page, errors } = await open("trace", 1280, "light");
  const span = () => text(page, "#span");
  const whole = await span();
  await page.focus("canvas.rows");
  for (let press = 0; press < 30; press++) await page.keyboard.press("+");
  await settled(page);
  assert.match(await span(), /: 1 us; every run/, "zoom ends at a microsecond");
  await page.keyboard.press("Home");
  await settled(page);
  assert.equal(await span(), whole);
  const height = () => page.$eval("canvas.rows", (canvas) => canvas.clientHeight);
  const before = await height();
  await page.keyboard.press("Enter");
  await settled(page);
  assert.ok((await height()) < before, "Enter folds the first group");
  await page.keyboard.press("Enter");
  await page.select("[aria-label='Rows']", "nodes");
  await settled(page);
  assert.ok((await height()) < before / 4, "rows are nodes");
  await page.select("[aria-label='Rows']", "cpus");
  for (const mode of ["process", "distance", "verdict"]) {
    await page.select("[aria-label='Colour by']", mode);
    await settled(page);
    assert.ok((await page.$$("#colours > *")).length > 1, `legend of ${mode}`);
  }
  await page.click("#machine-0 .llc .label");
  await settled(page);
  assert.ok((await height()) < before, "an LLC shows its rows alone");
  assert.equal(await page.$eval("#machine-0 .llc .label", (one) => one.getAttribute("aria-pressed")), "true");
  await page.hover("canvas.rows");
  await settled(page);
  assert.match(await text(page, "#told"), /LLC|CPU/, "the place under the pointer is told");
  assert.deepEqual(errors, []);
  checks++;
  await page.close();
}

async function filtersAreOfAllPanels() {
  const { page, errors } = await open("trace", 1280, "light");
  const count = (selector) => page.$$eval(selector, (found) => found.length);
  const [columns, lines, threads] = [
    await count("#residency-0 th"), await count("#tasks-0 polyline"), await count("#residency-0 tbody tr"),
  ];
  const moves = () => text(page, "#moves-0 tbody");
  const [allMoves, curve] = [await moves(), await page.$eval("#latency path", (path) => path.getAttribute("d"))];
  await page.click("#machine-0 .llc .label");
  assert.equal(await count("#residency-0 th"), 2, "one LLC is left");
  assert.ok(columns > 2 && lines > 1);
  assert.equal(await count("#tasks-0 polyline"), 1);
  assert.notEqual(await page.$eval("#latency path", (path) => path.getAttribute("d")), curve, "latencies are those of the LLC");
  assert.ok((await moves()).length <= allMoves.length);
  await page.click("#residency-0 td button");
  assert.equal(await count("#latency path"), 1, "latencies are those of a name");
  assert.ok((await count("#residency-0 tbody tr")) <= threads);
  assert.equal(await page.evaluate(() => document.activeElement.closest("section")?.id), "residency-0", "the focus stays");
  await page.click("#residency-0 td button");
  await page.click("#machine-0 .controls button");
  assert.equal(await count("#residency-0 tbody tr"), threads, "all is back");
  assert.equal(await moves(), allMoves);
  assert.deepEqual(errors, []);
  checks++;
  await page.close();
}

async function decisionsLeadToTheirPlace() {
  const { page } = await open("trace", 1280, "light");
  const whole = await text(page, "#span");
  await page.click("#decisions-0 tbody tr button");
  await settled(page);
  assert.notEqual(await text(page, "#span"), whole);
  await page.click("#decisions-0 details summary");
  assert.match(await text(page, "#decisions-0 details[open]"), /wake_affine|select|target/);
  checks++;
  await page.close();
}

async function themeAndCopying() {
  const { page } = await open("compare", 1280, "light");
  await page.click("#theme");
  assert.equal(await page.$eval("html", (html) => html.dataset.theme), "dark");
  const press = await page.$("#result-0 .controls button");
  await press.click();
  await page.waitForFunction((button) => button.textContent === "Copied", {}, press);
  assert.match(await text(page, "#result-0 pre"), /^Simulated by placewise .*Simulated with:\n/s);
  checks++;
  await page.close();
}

async function namesAreText() {
  const { page, errors } = await open("evil", 1280, "light");
  assert.match(await text(page, "#residency-0"), /<\/script><b>/, "the name is shown");
  assert.equal(await page.evaluate(() => document.querySelectorAll("main b, main img, body > b").length), 0);
  assert.equal(await page.evaluate(() => typeof window.pwned), "undefined");
  const refused = await page.evaluate(() => fetch("https://example.org/").then(() => false, () => true));
  assert.ok(refused, "the page may not use the network");
  assert.deepEqual(errors.filter((error) => !error.includes("example.org")), []);
  checks++;
  await page.close();
}

for (const name of Object.keys(PAGES)) {
  for (const width of [1280, 2560]) for (const scheme of ["light", "dark"]) await looks(name, width, scheme);
}
await timelineIsUsed();
await filtersAreOfAllPanels();
await decisionsLeadToTheirPlace();
await themeAndCopying();
await namesAreText();
await browser.close();
console.log(`${checks} pages looked at`);
