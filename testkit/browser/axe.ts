// What axe-core finds wrong with the page as it stands: WCAG 2.2 A and AA, best practices, and the experimental rules.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { AxeResults } from "axe-core";
import type { Page } from "playwright-core";

const source = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice", "experimental"];

const looks = [
  { colorScheme: "light", width: 1440, height: 900 },
  { colorScheme: "dark", width: 390, height: 844 },
] as const;

/** Colours in between two themes are nobody's. */
const standStill = `(() => {
  const still = new CSSStyleSheet();
  still.replaceSync("*, ::before, ::after { transition: none !important; animation: none !important; }");
  document.adoptedStyleSheets.push(still);
})()`;

/** base-ui guards the focus of a popup by hidden elements that only hand it on. */
const context = { exclude: ["[data-base-ui-focus-guard]"] };

/** Light on a desk, and dark on a telephone. One line for each element; empty: nothing is wrong. */
export async function violationsOf(page: Page, where: string): Promise<string[]> {
  if ((await page.evaluate("typeof axe")) === "undefined") {
    await page.evaluate(source);
    await page.evaluate(standStill);
  }
  const lines: string[] = [];
  for (const { colorScheme, width, height } of looks) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height });
    // As theme.ts does it when the page next draws a frame, which a busy machine may put off.
    await page.evaluate(`document.documentElement.dataset.theme = "${colorScheme}"`);
    const run = `axe.run(${JSON.stringify(context)}, { runOnly: ${JSON.stringify(tags)}, resultTypes: ["violations"] })`;
    const { violations } = (await page.evaluate(run)) as AxeResults;
    for (const { id, impact, nodes } of violations) {
      for (const { target, failureSummary } of nodes)
        lines.push(
          `${where} (${colorScheme}, ${width}): ${id}, ${impact}: ${target.join(" ")}: ${failureSummary}`,
        );
    }
  }
  return lines;
}
