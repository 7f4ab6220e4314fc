// How long an open page takes to show a change: a complete installation, a node's page in Chromium, and evidence that an operator hands
// in elsewhere. It goes from the api to PostgreSQL, to the worker that classifies the node, back to the api by a signal, to the page by its
// socket, and the page reads the explanation again and draws it.

import { readFileSync } from "node:fs";
import { pathsIn } from "@holdfast/cli/up/data-directory";
import { type Client, createClient } from "@holdfast/contracts/client";
import { addNodeEvidence, explainNode } from "@holdfast/contracts/endpoints/drift";
import { createAdminLink } from "@holdfast/contracts/endpoints/platform";
import { titleOf } from "@holdfast/contracts/reasons/catalogue";
import { chromium, type Page } from "playwright-core";
import { chromiumPath } from "../../../scripts/facilities.mjs";
import { firstOnline, startHoldfast } from "../holdfast.ts";
import type { Lab } from "../lab.ts";

const PASSWORD = "a password of the bench only";

export type OpenPage = {
  /** Milliseconds from just before the evidence is handed in until the page shows it, for each of so many changes. */
  changes(count: number): Promise<number[]>;
  /** The two requests alone: evidence handed in, explanation read. */
  requests(count: number): Promise<number[]>;
};

export async function openPage(lab: Lab): Promise<OpenPage> {
  const dataDirectory = lab.directory();
  const { apiUrl } = await startHoldfast(lab, { dataDirectory });
  const token = readFileSync(pathsIn(dataDirectory).operatorToken, "utf8").trim();
  const operator = createClient({ baseUrl: apiUrl, token });
  const nodeId = await firstOnline(operator);
  const { url: link } = await operator(createAdminLink, { body: {} });
  const page = await visit(lab, { apiUrl, link });
  await page.goto(`${apiUrl}/nodes/${nodeId}`);
  await page.locator("#main h1").waitFor();
  await page.evaluate(watchCauses, titleOf("node_ops_ssh_failed"));
  const hand = (ssh: "failed" | "succeeded") => handIn(operator, nodeId, ssh);
  return {
    async changes(count) {
      const times: number[] = [];
      await settled(page);
      for (let n = 0; n < count; n += 1) {
        const ssh = n % 2 === 0 ? "failed" : "succeeded";
        const shown = page.evaluate(nextChange, ssh === "failed");
        const from = Date.now();
        await hand(ssh);
        times.push((await shown) - from);
        await settled(page);
      }
      return times;
    },
    async requests(count) {
      const times: number[] = [];
      for (let n = 0; n < count; n += 1) {
        const from = performance.now();
        await hand(n % 2 === 0 ? "failed" : "succeeded");
        await operator(explainNode, { params: { node_id: nodeId } });
        times.push(performance.now() - from);
      }
      return times;
    },
  };
}

const handIn = (operator: Client, nodeId: string, ssh: "failed" | "succeeded") =>
  operator(addNodeEvidence, { params: { node_id: nodeId }, body: { ssh } });

/** Signed in as the first administrator. */
async function visit(lab: Lab, { apiUrl, link }: { apiUrl: string; link: string }): Promise<Page> {
  const secret = new URL(link).hash.slice(1);
  const response = await fetch(`${apiUrl}/v1/links/redeem`, {
    method: "POST",
    headers: { "content-type": "application/json", origin: apiUrl },
    body: JSON.stringify({ secret, password: PASSWORD, email: "bench@example.com", name: "Bench" }),
  });
  const [name = "", value = ""] = (response.headers.get("set-cookie")?.split(";")[0] ?? "").split("=");
  if (!response.ok) throw new Error(`the link was answered with ${response.status}`);
  const browser = await chromium.launch({
    executablePath: chromiumPath,
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"],
  });
  lab.onClose(() => browser.close());
  const context = await browser.newContext();
  await context.addCookies([{ name, value, url: apiUrl }]);
  return context.newPage();
}

/** What was under way when the last change was shown is over: a page at rest, as one that somebody looks at. */
const settled = (page: Page) => page.waitForTimeout(700);

type Watched = { shown: boolean; next: { wanted: boolean; resolve(at: number): void } | undefined };
declare const window: { causes: Watched };
declare const document: { body: unknown; querySelector(selector: string): { textContent: string } | null };
declare const MutationObserver: new (look: () => void) => { observe(where: unknown, options: object): void };

/** In the page: notes when the cause appears among those that it shows, or is gone. */
function watchCauses(title: string): void {
  const isShown = () =>
    document.querySelector('section[aria-label="Causes"]')?.textContent.includes(title) === true;
  const watched: Watched = { shown: isShown(), next: undefined };
  window.causes = watched;
  new MutationObserver(() => {
    watched.shown = isShown();
    if (watched.next?.wanted !== watched.shown) return;
    watched.next.resolve(Date.now());
    watched.next = undefined;
  }).observe(document.body, { childList: true, subtree: true, characterData: true });
}

function nextChange(wanted: boolean): Promise<number> {
  return new Promise((resolve) => {
    window.causes.next = { wanted, resolve };
  });
}
