// A real Chromium for tests of the page. Whatever the page complains about (script errors, refused
// content) is collected, because a strict Content-Security-Policy fails silently for the person.

import { existsSync, mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type Browser, type BrowserContextOptions, chromium, type Locator, type Page } from "playwright-core";
import { afterAll } from "vitest";
import { chromiumPath } from "../../scripts/facilities.mjs";

const screenshots = fileURLToPath(new URL("../../test-output/screenshots/", import.meta.url));

/** As long as `expect.poll` waits: a release walks the node's disk, which takes its time on a busy machine. */
const patienceMs = 100_000;

export type Visitor = { page: Page; complaints: string[] };

/** Without WebGL a terminal is drawn with elements, whose text a test can read. */
export const withoutWebgl = ["--disable-3d-apis"];

/** One Chromium per test file or group, started for its first visitor; `visit` gives a person with a clean profile. */
export function openChromium(more: string[] = []): { visit(options?: BrowserContextOptions): Promise<Visitor> } {
  let launched: Promise<Browser> | undefined;
  afterAll(async () => (await launched)?.close());
  return {
    async visit(options = {}) {
      launched ??= launch(more);
      const context = await (await launched).newContext({
        viewport: { width: 1440, height: 900 },
        // A page that moves is drawn again and again, by the processor.
        reducedMotion: "reduce",
        ...options,
      });
      context.setDefaultTimeout(patienceMs);
      const page = await context.newPage();
      const complaints: string[] = [];
      page.on("pageerror", (error) => complaints.push(error.message));
      page.on("console", (message) => {
        // Chromium logs every 401 or 410 that the page asked for and handles.
        const refusedRequest = message.text().startsWith("Failed to load resource");
        // A warning with arguments is a script's console.warn. Our page has none; a library may warn that
        // the machine is slow, as xterm.js does.
        const ofLibrary = message.type() === "warning" && message.args().length > 0;
        if (["error", "warning"].includes(message.type()) && !refusedRequest && !ofLibrary)
          complaints.push(message.text());
      });
      return { page, complaints };
    },
  };
}

function launch(more: string[]): Promise<Browser> {
  if (!existsSync(new URL("../../web/dist/index.html", import.meta.url)))
    throw new Error("run `npm start` or `npm test` to build the page");
  return chromium.launch({
    executablePath: chromiumPath,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-background-networking",
      "--disable-component-update",
      ...more,
    ],
  });
}

/** Chooses in a field that searches the server, by keyboard alone. */
export async function pick(scope: Page | Locator, field: string, text: string): Promise<void> {
  const box = scope.getByRole("combobox", { name: field });
  await box.fill(text);
  const page = "page" in scope ? scope.page() : scope;
  // The first that is found is chosen by Enter alone.
  await page.locator("[role=option][data-highlighted]").filter({ hasText: text }).waitFor();
  await box.press("Enter");
}

export async function keepScreenshot(page: Page, name: string): Promise<void> {
  mkdirSync(screenshots, { recursive: true });
  await page.screenshot({ path: `${screenshots}${name}.png` });
}
