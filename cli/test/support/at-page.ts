// The first administrator of an installation, before its page in Chromium, at the terminal of an allocation.

import { randomBytes } from "node:crypto";
import type { Page } from "playwright-core";
import { PASSWORD } from "../../../testkit/api/api.ts";
import type { Visitor } from "../../../testkit/browser/browser.ts";
import type { Shells } from "./shells.ts";

export type AtPage = Visitor & {
  /** By the link on the allocation's page. */
  openTerminal(): Promise<void>;
  ready(): Promise<void>;
  type(text: string): Promise<void>;
  /** Somewhere on the terminal's screen. */
  shows(text: string): Promise<void>;
  screen(): Promise<string>;
  /** What one command printed. */
  ask(line: string): Promise<string>;
};

export async function signIn(visitor: Visitor, shells: Shells): Promise<AtPage> {
  const { page } = visitor;
  const { url } = await shells.json<{ url: string }>(["admin", "link"]);
  await createFirstAccount(page, url);
  return { ...visitor, ...atTerminal(page, shells) };
}

/** `link`: of `holdfast admin link`. */
export async function createFirstAccount(page: Page, link: string): Promise<void> {
  await page.goto(link);
  await page.getByLabel("Email").fill("root@example.com");
  await page.getByLabel("Your name").fill("First Admin");
  await page.getByLabel("New password").fill(PASSWORD);
  await page.getByRole("button", { name: "Create account" }).click();
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
}

function atTerminal(page: Page, shells: Shells): Omit<AtPage, keyof Visitor> {
  const rows = page.locator(".xterm-rows");
  const type = (text: string) => page.keyboard.type(text);
  const shows = (text: string) => rows.getByText(text).first().waitFor();
  const screen = async () => (await rows.textContent()) ?? "";
  return {
    async openTerminal() {
      const { id, username } = shells.allocation;
      const name = `Open terminal of ${username} on ${shells.node.name}`;
      await page.goto(`${(await shells.up.ready).api_url}/allocations/${id}`);
      await page.getByRole("link", { name }).click();
    },
    ready: () => page.locator('[data-phase="ready"]').waitFor(),
    type,
    shows,
    screen,
    async ask(line) {
      // What is typed differs from the answer, because the screen shows that too.
      const mark = randomBytes(4).toString("hex");
      await type(`clear; echo "{$(${line})}"${mark.slice(0, 4)}''${mark.slice(4)}\n`);
      await shows(mark);
      return new RegExp(`\\{([^{}]*)\\}${mark}`).exec(await screen())?.[1] ?? "";
    },
  };
}
