// How fast a large page opens and zooms in a real browser. `make bench` runs it.
//
//   node speed.mjs CHROMIUM DIRECTORY PAGE

import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [chromium, directory, file] = [process.argv[2], resolve(process.argv[3]), resolve(process.argv[4])];
const require = createRequire(join(directory, "package.json"));
const puppeteer = (await import(pathToFileURL(require.resolve("puppeteer-core")))).default;
const browser = await puppeteer.launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-gpu"] });

// From the whole trace to a microsecond and back, a step in each frame: frames a second.
const zoomed = (page) => page.evaluate(async () => {
  const canvas = document.querySelector("canvas.rows");
  canvas.scrollIntoView();
  canvas.focus();
  const box = canvas.getBoundingClientRect();
  const wheel = (deltaY) => canvas.dispatchEvent(new WheelEvent("wheel", { deltaY, ctrlKey: true, cancelable: true, clientX: box.left + box.width / 2, clientY: box.top + 9 }));
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const steps = [...Array(50).fill(-1), ...Array(50).fill(1)];
  let last = await frame();
  const begin = last;
  let longest = 0;
  for (const step of steps) {
    wheel(step);
    const now = await frame();
    [longest, last] = [Math.max(longest, now - last), now];
  }
  return { rate: (steps.length * 1000) / (last - begin), longest };
});

for (const width of [1280, 2560]) {
  const page = await browser.newPage();
  await page.setViewport({ width, height: 1000 });
  const begin = performance.now();
  await page.goto(pathToFileURL(file));
  await page.waitForSelector("#main[aria-busy=false]", { timeout: 60_000 });
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const opened = (performance.now() - begin) / 1000;
  const { rate, longest } = await zoomed(page);
  console.log(`  opened at ${width} pixels in ${opened.toFixed(2)} s; zooms at ${rate.toFixed(0)} frames a second, the longest ${longest.toFixed(0)} ms`);
  await page.close();
}
await browser.close();
