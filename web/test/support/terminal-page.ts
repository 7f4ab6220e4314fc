// The terminal's page in a browser, over a stand-in for the gateway whose every frame is the test's.

import { createHash } from "node:crypto";
import type { TerminalSession } from "@holdfast/contracts/endpoints/terminals";
import { type ChainStep, readinessSteps } from "@holdfast/contracts/terminal/frames";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { BrowserContextOptions, Page } from "playwright-core";
import { afterEach, beforeAll, beforeEach, expect, vi } from "vitest";
import { addMember, createOrg, startTestApi, type TestApi } from "../../../testkit/api/api.ts";
import { openChromium, type Visitor, withoutWebgl } from "../../../testkit/browser/browser.ts";
import { signIn } from "../../../testkit/browser/sign-in.ts";
import { openRoles } from "../../../testkit/database/database.ts";
import { type StandIn, type StandInClient, startStandIn } from "../../../testkit/gateway/stand-in.ts";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";

export const plain = openChromium(withoutWebgl);
export const drawing = openChromium();
export const allocationId = uuidv7();
export const nodeId = uuidv7();
export const sessionId = uuidv7();
export const correlationId = uuidv7();
export const path = `/allocations/${allocationId}/terminal`;
/** Enough for a busy machine, on which the page would else give up for good reason. */
export const PROMISED_SECONDS = 60;

export let api: TestApi;
export let gateway: StandIn;
let signedIn: BrowserContextOptions["storageState"];
const pages: Page[] = [];

/** What the page asked the api for. */
export type Asked = {
  tokens: { session_id?: string; offset?: number }[];
  reports: { code: string; detail?: string }[];
};

const allocation = {
  id: allocationId,
  project_id: uuidv7(),
  node_id: nodeId,
  node_name: "rock-1",
  username: "alice",
  status: "active",
  user_state: null,
  reason: null,
  task_id: null,
  own_account: false,
  owner: null,
  access: "manage",
  access_until: null,
  home: "/home/alice",
  created_by: "admin@reef.example",
  created_at: "2026-01-01T00:00:00.000Z",
  active_at: "2026-01-01T00:00:01.000Z",
  released_at: null,
  revision: 2,
};

/** A person before the page, whose api knows this allocation and hands out tokens for the stand-in. */
export async function come(
  options: BrowserContextOptions & {
    terminals?: TerminalSession[];
    url?: () => string;
    browser?: typeof plain;
  } = {},
): Promise<Visitor & { asked: Asked }> {
  const { terminals = [], url = () => gateway.url, browser = plain, ...rest } = options;
  const visitor = await browser.visit({ storageState: signedIn, ...rest });
  const asked: Asked = { tokens: [], reports: [] };
  const answer = (body: unknown) => ({ contentType: "application/json", body: JSON.stringify(body) });
  const { page } = visitor;
  pages.push(page);
  await page.route(`**/v1/allocations/${allocationId}`, (route) => route.fulfill(answer(allocation)));
  await page.route(/\/v1\/allocations(\?|$)/, (route) =>
    route.fulfill(answer({ items: [allocation], next_cursor: null })),
  );
  await page.route("**/v1/terminals?*", (route) => route.fulfill(answer({ items: terminals, next_cursor: null })));
  await page.route("**/v1/allocations/*/terminal-tokens", (route) => {
    asked.tokens.push(route.request().postDataJSON());
    return route.fulfill(
      answer({
        token: `hft-stand-in-${asked.tokens.length}`,
        url: url(),
        session_id: sessionId,
        correlation_id: correlationId,
        expires_at: new Date(Date.now() + 60_000).toISOString(),
        deadline_seconds: PROMISED_SECONDS,
      }),
    );
  });
  await page.route("**/v1/terminals/*/failures", (route) => {
    asked.reports.push(route.request().postDataJSON());
    return route.fulfill({ status: 204 });
  });
  return { ...visitor, asked };
}

export async function opened(page: Page, address = path): Promise<StandInClient> {
  await page.goto(api.url + address);
  return gateway.nextClient();
}

export const status = (step: ChainStep, ms: number) =>
  ({ type: "status", step, at: new Date().toISOString(), ms, correlation_id: correlationId }) as const;
export const ready = (offset = 0, replay = 0) =>
  ({ type: "ready", session_id: sessionId, offset, window: 512 * 1024, replay }) as const;

export async function openedAndReady(page: Page, address = path): Promise<StandInClient> {
  const client = await opened(page, address);
  for (const [index, step] of readinessSteps.entries()) client.say(status(step, index * 9));
  client.say(ready());
  await phase(page, "ready");
  return client;
}

/** From here on time stands still for the page, until it is moved or goes on. */
export const stopClock = (page: Page) => page.clock.pauseAt(Date.now() + 3_600_000);

export const phase = (page: Page, name: string) => page.locator(`[data-phase="${name}"]`).waitFor();
export const rows = (page: Page) => page.locator(".xterm-rows");
export const typed = ({ pieces }: StandInClient) => Buffer.concat(pieces);
export const alert = (page: Page) => page.getByRole("alert");
export const bar = (page: Page) => page.getByRole("status", { name: "Connection" });
export const chip = (page: Page) => page.locator("header [data-phase]");
export type Box = { x: number; y: number; width: number; height: number } | null;
export function overlap(one: Box, other: Box): boolean {
  if (!one || !other) throw new Error("one of them is not on the page");
  const across = one.x < other.x + other.width && other.x < one.x + one.width;
  return across && one.y < other.y + other.height && other.y < one.y + one.height;
}
/** What is typed goes to the shell. It is hidden, so that nobody sees it: it is only there. */
export const keyboardIsBack = (page: Page) =>
  page.locator(".xterm-helper-textarea:focus").waitFor({ state: "attached" });

/** Before the tests of a file, inside of its `describe`: an api with one member, and a gateway of the test's own. */
export function prepareTerminalPage(): void {
  beforeAll(async () => {
    api = await startTestApi();
    const org = await createOrg(api, "reef");
    await addMember(api, org, "member@reef.example", "member");
    gateway = await startStandIn();
    atEnd(() => gateway.stop());
    await announce(gateway.url);
    const { page } = await plain.visit();
    await signIn(page, api.url, "member@reef.example");
    await page.locator("#main h1").waitFor();
    signedIn = await page.context().storageState();
  });
  beforeEach(() => gateway.behave("open"));
  // Nobody is left who would connect, or connect again, in the next test.
  afterEach(async () => {
    for (const page of pages.splice(0)) await page.context().close();
  });
}

export const picture = [
  "\x1b[1;32malice@rock-1\x1b[0m:\x1b[1;34m~\x1b[0m$ ls --color",
  "\x1b[1;34mkelp forest\x1b[0m  \x1b[1;32mrun.sh\x1b[0m  \x1b[31merror.log\x1b[0m  notes-kelp.md  🐙 漢字 ok",
  "\x1b[38;2;240;147;90mtruecolour buoy\x1b[0m \x1b[7minverse\x1b[0m \x1b[2mdim\x1b[0m \x1b[3mitalic\x1b[0m \x1b[4munderlined\x1b[0m",
  "┌──────────┬─────┐",
  "│ gpu      │ 42% │",
  "└──────────┴─────┘",
  `${[0, 1, 2, 3, 4, 5, 6, 7].map((n) => `\x1b[3${n}m■■ \x1b[9${n}m■■ `).join("")}\x1b[0m`,
  "See https://example.com/docs",
  "\x1b[1;32malice@rock-1\x1b[0m:\x1b[1;34m~\x1b[0m$ ",
].join("\r\n");

export const digest = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");

/** As a gateway does every few seconds. The page's policy follows within two seconds. */
export async function announce(url: string): Promise<void> {
  const { system } = openRoles(api.database);
  await system`INSERT INTO gateways (id, terminal_url, node_url, sessions, last_seen_at)
    VALUES (${uuidv7()}, ${url}, 'https://127.0.0.1:18443', 0, now() + interval '1 hour')`;
  const { origin } = new URL(url);
  const policy = async () =>
    (await fetch(api.url, { headers: { accept: "text/html" } })).headers.get("content-security-policy");
  await vi.waitFor(
    async () => expect(await policy()).toContain(`${origin} ${origin.replace("ws", "http")}`),
    100_000,
  );
}
