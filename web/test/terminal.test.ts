// The terminal's page in a browser. The gateway is a stand-in whose every frame is the test's; the way
// through a real one to a real shell is in cli/test.

import { createHash, randomBytes } from "node:crypto";
import type { TerminalSession } from "@holdfast/contracts/endpoints/terminals";
import { ApiError } from "@holdfast/contracts/errors";
import { presentReason } from "@holdfast/contracts/reasons/catalogue";
import { isTerminalFailure, terminalFailures } from "@holdfast/contracts/reasons/terminal";
import { type ChainStep, readinessSteps } from "@holdfast/contracts/terminal/frames";
import { DETECTION_MS, PING_MS } from "@holdfast/contracts/terminal/liveness";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { BrowserContextOptions, Page } from "playwright-core";
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { addMember, createOrg, PASSWORD, startTestApi, type TestApi } from "../../testkit/api/api.ts";
import { violationsOf } from "../../testkit/browser/axe.ts";
import { keepScreenshot, openChromium, type Visitor, withoutWebgl } from "../../testkit/browser/browser.ts";
import { openRoles } from "../../testkit/database/database.ts";
import { type StandIn, type StandInClient, startStandIn } from "../../testkit/gateway/stand-in.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";

const plain = openChromium(withoutWebgl);
const drawing = openChromium();
const allocationId = uuidv7();
const nodeId = uuidv7();
const sessionId = uuidv7();
const correlationId = uuidv7();
const path = `/allocations/${allocationId}/terminal`;
/** Enough for a busy machine, on which the page would else give up for good reason. */
const PROMISED_SECONDS = 60;

let api: TestApi;
let gateway: StandIn;
let signedIn: BrowserContextOptions["storageState"];
const pages: Page[] = [];

/** What the page asked the api for. */
type Asked = { tokens: { session_id?: string; offset?: number }[]; reports: { code: string; detail?: string }[] };

const allocation = {
  id: allocationId,
  project_id: uuidv7(),
  node_id: nodeId,
  node_name: "rock-1",
  username: "alice",
  status: "active",
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
async function come(
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

async function opened(page: Page, address = path): Promise<StandInClient> {
  await page.goto(api.url + address);
  return gateway.nextClient();
}

const status = (step: ChainStep, ms: number) =>
  ({ type: "status", step, at: new Date().toISOString(), ms, correlation_id: correlationId }) as const;
const ready = (offset = 0, replay = 0) =>
  ({ type: "ready", session_id: sessionId, offset, window: 512 * 1024, replay }) as const;

async function openedAndReady(page: Page, address = path): Promise<StandInClient> {
  const client = await opened(page, address);
  for (const [index, step] of readinessSteps.entries()) client.say(status(step, index * 9));
  client.say(ready());
  await phase(page, "ready");
  return client;
}

/** From here on time stands still for the page, until it is moved or goes on. */
const stopClock = (page: Page) => page.clock.pauseAt(Date.now() + 3_600_000);

const phase = (page: Page, name: string) => page.locator(`[data-phase="${name}"]`).waitFor();
const rows = (page: Page) => page.locator(".xterm-rows");
const typed = ({ pieces }: StandInClient) => Buffer.concat(pieces);
const alert = (page: Page) => page.getByRole("alert");
const bar = (page: Page) => page.getByRole("status", { name: "Connection" });
const chip = (page: Page) => page.locator("header [data-phase]");
type Box = { x: number; y: number; width: number; height: number } | null;
function overlap(one: Box, other: Box): boolean {
  if (!one || !other) throw new Error("one of them is not on the page");
  const across = one.x < other.x + other.width && other.x < one.x + one.width;
  return across && one.y < other.y + other.height && other.y < one.y + one.height;
}
/** What is typed goes to the shell. It is hidden, so that nobody sees it: it is only there. */
const keyboardIsBack = (page: Page) => page.locator(".xterm-helper-textarea:focus").waitFor({ state: "attached" });

describe.skipIf(lacks("chromium"))("a terminal's page", () => {
  beforeAll(async () => {
    api = await startTestApi();
    const org = await createOrg(api, "reef");
    await addMember(api, org, "member@reef.example", "member");
    gateway = await startStandIn();
    atEnd(() => gateway.stop());
    await announce(gateway.url);
    const { page } = await plain.visit();
    await page.goto(api.url);
    await page.getByLabel("Email").fill("member@reef.example");
    await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.locator("#main h1").waitFor();
    signedIn = await page.context().storageState();
  });
  beforeEach(() => gateway.behave("open"));
  // Nobody is left who would connect, or connect again, in the next test.
  afterEach(async () => {
    for (const page of pages.splice(0)) await page.context().close();
  });

  it("TERM-08 shows each step with its time while it connects; then the terminal takes over", async () => {
    const { page, complaints, asked } = await come();
    const client = await opened(page);
    await client.until(({ frames }) => frames[0]?.type === "resize");
    expect(asked.tokens).toEqual([{}]);
    for (const [index, step] of readinessSteps.entries()) {
      client.say(status(step, index * 100));
      const line = page.locator(`[data-step="${step}"][data-state="ok"]`);
      await line.getByText(/^[\d.]+ m?s$/).waitFor();
      if (step === "terminal_open_sent") await keepScreenshot(page, "terminal-connecting");
    }
    expect(page.url()).toBe(api.url + path);
    client.say(ready());
    await phase(page, "ready");
    await page.getByRole("list", { name: "Readiness chain" }).waitFor({ state: "detached" });
    client.show("\x1b]0;alice@rock-1: ~\x07\x1b[32malice@rock-1\x1b[0m:\x1b[34m~\x1b[0m$ ");
    await rows(page).getByText("alice@rock-1:~$").waitFor();
    await expect.poll(() => page.title()).toBe("alice@rock-1: ~ · Holdfast");
    await expect.poll(() => page.url()).toBe(`${api.url}${path}?session=${sessionId}`);
    await page.keyboard.type("echo héllo 🐙");
    await page.keyboard.press("Enter");
    await client.until((each) => typed(each).toString() === "echo héllo 🐙\r");
    expect(client.token).toBe("hft-stand-in-1");
    expect(await page.evaluate("document.documentElement.outerHTML")).not.toContain(client.token);
    expect(complaints).toEqual([]);
  });

  it("TERM-09 puts every failure of the catalogue in words, with its owner, its action and its button", async () => {
    const { page } = await come();
    for (const [code, entry] of Object.entries(terminalFailures)) {
      if (!isTerminalFailure(code)) continue;
      const client = await opened(page);
      client.say(status("token_ready", 4));
      client.say(status("browser_ws_ready", 21));
      client.say({ type: "error", code, ...entry, correlation_id: correlationId });
      await phase(page, "failed");
      const text = (await alert(page).textContent()) ?? "";
      const advice = entry.action.replaceAll("<id>", "rock-1");
      for (const words of [entry.message, advice, code, correlationId, "Where", "Who can fix it"])
        expect(text, code).toContain(words.replaceAll("`", ""));
      await alert(page).getByRole("button", { name: "Copy correlation id" }).waitFor();
      const again = page.getByRole("button", { name: /^(Try again|Take it back here|Open a new shell)$/ });
      const changeable = [
        ...["terminal_session_unknown", "terminal_token_mint_failed", "terminal_frame_too_large"],
        ...["terminal_node_revoked", "terminal_node_quarantined"],
      ].includes(code);
      expect((await again.count()) > 0, code).toBe(entry.retryable || changeable);
      await page.getByRole("link", { name: "Back", exact: true }).waitFor();
      if (code === "terminal_node_stream_timeout") await keepScreenshot(page, "terminal-failed");
    }
  });

  it("TERM-06 says why the shell did not start, and tries again by the same click", async () => {
    const { page, asked } = await come();
    const client = await opened(page);
    const entry = terminalFailures.terminal_pty_failed;
    const why = "The user alice does not exist on the node.";
    client.say({
      type: "error",
      code: "terminal_pty_failed",
      ...entry,
      message: why,
      correlation_id: correlationId,
    });
    await alert(page).getByText(why).waitFor();
    await alert(page).getByText(entry.message).waitFor();
    await page.getByRole("button", { name: "Try again" }).click();
    const next = await gateway.nextClient();
    next.say(ready());
    await phase(page, "ready");
    expect(asked.tokens).toEqual([{}, {}]);
    expect(next.token).not.toBe(client.token);
  });

  it("TERM-05 is never stuck at connecting: it says so after the promised time, and reports it", async () => {
    const { page, asked } = await come();
    await page.clock.install();
    await stopClock(page);
    const client = await opened(page);
    await phase(page, "waiting");
    await page.clock.fastForward(PROMISED_SECONDS * 1_000 + 1_000);
    await phase(page, "waiting");
    await page.clock.fastForward(1_500);
    await alert(page).getByText(terminalFailures.terminal_ui_connecting_stuck.message).waitFor();
    await client.closed;
    await expect.poll(() => asked.reports).toEqual([{ code: "terminal_ui_connecting_stuck" }]);
  });

  it("TERM-09 tells a gateway that refuses from one that is not there, and reports which", async () => {
    const gone = await startStandIn();
    await announce(gone.url);
    let url = gateway.url;
    const { page, asked } = await come({ url: () => url });
    // The page waits a few seconds for a gateway's word.
    await page.clock.install();
    await stopClock(page);
    gateway.behave("refused");
    await page.goto(api.url + path);
    await alert(page).getByText(terminalFailures.terminal_gateway_upgrade_failed.message).waitFor();
    await gone.stop();
    url = gone.url;
    await page.getByRole("button", { name: "Try again" }).click();
    await alert(page).getByText(terminalFailures.terminal_public_route_missing.message).waitFor();
    await expect
      .poll(() => asked.reports.map(({ code }) => code))
      .toEqual(["terminal_gateway_upgrade_failed", "terminal_public_route_missing"]);
    gateway.behave("open");
    url = gateway.url;
    await page.getByRole("button", { name: "Try again" }).click();
    (await gateway.nextClient()).say(ready());
    await phase(page, "ready");
  });

  it("TERM-02 reaches a gateway that came after the page was loaded", async () => {
    let late: StandIn | undefined;
    const { page, asked } = await come({ url: () => late?.url ?? "" });
    await page.goto(`${api.url}/allocations/${allocationId}`);
    await page.getByRole("heading", { level: 1, name: "alice on rock-1" }).waitFor();
    const came = await startStandIn();
    atEnd(() => came.stop());
    late = came;
    await announce(came.url);
    await page.getByRole("link", { name: /^Open terminal/ }).click();
    (await came.nextClient()).say(ready());
    await phase(page, "ready");
    expect(asked.tokens.length).toBe(2);
  });

  it("TERM-10 comes back to the same shell after a loss, where the output left off", async () => {
    const { page, asked } = await come();
    await page.clock.install();
    const client = await openedAndReady(page);
    client.show("before ");
    await rows(page).getByText("before").waitFor();
    // What is shown now is shown for a second.
    await stopClock(page);
    client.hangUp();
    await bar(page).getByText("The connection to the gateway was lost.").waitFor();
    await bar(page)
      .getByText(/Next try in \d s/)
      .waitFor();
    await keepScreenshot(page, "terminal-lost");
    await page.clock.resume();
    const next = await gateway.nextClient();
    expect(asked.tokens.at(-1)).toEqual({ session_id: sessionId, offset: 7 });
    const place = await bar(page).getByText("Reconnecting").boundingBox();
    const line = await rows(page).getByText("before").boundingBox();
    expect(place?.y, "it hides nothing that was written last").toBeGreaterThan((line?.y ?? 0) + 100);
    next.say(ready(7));
    next.show("after");
    await rows(page).getByText("before after").waitFor();
    await phase(page, "ready");
  });

  it("TERM-10 keeps what is typed while the shell cannot be reached, and sends it from where it is wanted", async () => {
    const { page } = await come();
    await page.clock.install();
    const client = await opened(page);
    client.say({ ...ready(), input: { attachment: 1, from: 0 } });
    await phase(page, "ready");
    await keyboardIsBack(page);
    await page.keyboard.type("abcdef");
    await client.until(() => client.typed() === "abcdef");
    client.say({ type: "ack", bytes: 2 });
    await stopClock(page);
    client.hangUp();
    await phase(page, "pausing");
    await page.keyboard.type("gh");
    await page.clock.runFor(200);
    await page.getByText("6 bytes typed will be sent").waitFor();
    await page.clock.resume();
    const next = await gateway.nextClient();
    expect(next.writer).toBe(client.writer);
    await phase(page, "waiting");
    await page.keyboard.type("i");
    next.say({ ...ready(), input: { attachment: 1, from: 4 } });
    await next.until(() => next.typed() === "efghi");
    expect(next.frames).toContainEqual({ type: "input", attachment: 1, from: 4 });
    next.say({ type: "ack", bytes: 6 });
    next.say({ type: "exit", code: 0, signal: null });
    await page.getByText("The last 3 bytes typed were not confirmed by the shell").waitFor();
  });

  it("TERM-10 says of a shell that has ended that it is over, not at which step it stopped", async () => {
    const { page } = await come();
    const refusal = new ApiError("terminal_session_unknown");
    const body = JSON.stringify(refusal.envelope(correlationId));
    await page.route("**/terminal-tokens", (route) =>
      route.fulfill({ status: refusal.status, contentType: "application/json", body }),
    );
    await page.goto(`${api.url}${path}?session=${sessionId}`);
    await alert(page).getByText(terminalFailures.terminal_session_unknown.message).waitFor();
    expect(await page.getByRole("list", { name: "Readiness chain" }).count()).toBe(0);
    await page.getByRole("button", { name: "Open a new shell" }).waitFor();
    await keepScreenshot(page, "terminal-over");
  });

  it("TERM-10 says where output was lost for good, and keeps what was shown", async () => {
    const { page } = await come();
    const client = await openedAndReady(page);
    client.show("\x1b[?1049hbefore");
    await rows(page).getByText("before").waitFor();
    client.say(ready(5_000));
    client.show("after");
    await rows(page).getByText("Some output was lost here.").waitFor();
    await rows(page).getByText("after").waitFor();
    expect(await rows(page).textContent()).toContain("before");
  });

  it("TERM-10 keeps trying until it is told to stop, and goes on when it is told to", async () => {
    const { page, asked } = await come();
    await page.clock.install();
    const client = await openedAndReady(page);
    await stopClock(page);
    gateway.behave("refused");
    client.hangUp();
    for (const attempt of [1, 2, 3, 4, 5]) {
      await bar(page).getByText(`try ${attempt}`, { exact: true }).waitFor();
      await page.getByRole("button", { name: "Reconnect now" }).click();
    }
    await bar(page).getByText(terminalFailures.terminal_gateway_upgrade_failed.message).waitFor();
    await keepScreenshot(page, "terminal-lost-for-long");
    await expect.poll(() => asked.reports).toHaveLength(1);
    await page.getByRole("button", { name: "Stop" }).click();
    await phase(page, "stopped");
    await keepScreenshot(page, "terminal-stopped");
    gateway.behave("open");
    await page.getByRole("button", { name: "Reconnect", exact: true }).click();
    (await gateway.nextClient()).say(ready());
    await phase(page, "ready");
    expect(asked.tokens.at(-1)).toEqual({ session_id: sessionId, offset: 0 });
  });

  it("TERM-10 notices a gateway that stops answering, and asks for no token while it is away", async () => {
    const { page, asked } = await come();
    await page.clock.install();
    const client = await openedAndReady(page);
    await stopClock(page);
    const pings = ({ frames }: StandInClient) => frames.filter(({ type }) => type === "ping").length;
    for (let turn = 1; turn <= 5; turn += 1) {
      const before = pings(client);
      await page.clock.runFor(PING_MS);
      await client.until((each) => pings(each) > before);
      // Behind the answer, something that can be seen although the clock stands still.
      client.say({ type: "unresponsive", cause: "disconnected", since: new Date().toISOString() });
      await phase(page, "unresponsive");
      client.say({ type: "responsive" });
      await phase(page, "ready");
    }
    client.fallSilent();
    gateway.behave("silent");
    await page.clock.runFor(DETECTION_MS);
    await expect.poll(() => chip(page).textContent()).toBe("Unresponsive");
    await bar(page).getByText("The gateway does not answer.").waitFor();
    await keepScreenshot(page, "terminal-unresponsive");
    // A try is under way, and hangs: the button begins another.
    await page.getByRole("button", { name: "Reconnect now" }).click();
    await expect.poll(() => chip(page).textContent()).toBe("Reconnecting");
    expect(asked.tokens).toHaveLength(1);
    gateway.behave("open");
    await page.getByRole("button", { name: "Reconnect now" }).click();
    (await gateway.nextClient()).say(ready());
    await expect.poll(() => chip(page).textContent()).toBe("Connected");
  });

  it("TERM-10 shows a node that does not answer, and is back by itself with the node", async () => {
    const { page } = await come();
    const client = await openedAndReady(page);
    client.show("before ");
    client.say({ type: "unresponsive", cause: "silent", since: new Date().toISOString() });
    await expect.poll(() => chip(page).textContent()).toBe("Unresponsive");
    await bar(page)
      .getByText(/^The node has not answered since \d\d:\d\d:\d\d\.$/)
      .waitFor();
    await keepScreenshot(page, "terminal-node-unresponsive");
    client.say({ type: "responsive" });
    await expect.poll(() => chip(page).textContent()).toBe("Connected");
    await bar(page).waitFor({ state: "detached" });
    client.show("after");
    await rows(page).getByText("before after").waitFor();
  });

  it("TERM-10 is looking for its shell while the browser is offline, and tries at once when it is online", async () => {
    const { page } = await come();
    await page.clock.install();
    const client = await openedAndReady(page);
    await stopClock(page);
    client.fallSilent();
    await page.context().setOffline(true);
    await page.clock.runFor(DETECTION_MS);
    await expect.poll(() => chip(page).textContent()).toBe("Unresponsive");
    await page.getByRole("button", { name: "Reconnect now" }).click();
    await bar(page).getByText("try 2", { exact: true }).waitFor();
    await phase(page, "pausing");
    // The clock stands still: nothing but the browser's word leads to a try.
    await page.context().setOffline(false);
    (await gateway.nextClient()).say(ready());
    await phase(page, "ready");
  });

  it("TERM-10 covers neither its state nor its buttons with messages", async () => {
    const { page } = await come({ viewport: { width: 900, height: 500 } });
    await page.clock.install();
    const client = await openedAndReady(page);
    client.show("\r\n".repeat(60));
    client.show("prompt$ ");
    await rows(page).getByText("prompt$").waitFor();
    await stopClock(page);
    gateway.behave("refused");
    await page.route(`${api.url}/v1/**`, (route) => route.abort());
    client.hangUp();
    for (const attempt of [1, 2, 3, 4]) {
      await bar(page).getByText(`try ${attempt}`, { exact: true }).waitFor();
      await page.getByRole("button", { name: "Reconnect now" }).click();
    }
    const messages = page.getByRole("status", { name: "Messages" });
    await messages.getByText("Holdfast is unreachable").waitFor();
    await bar(page).getByText("try 5", { exact: true }).waitFor();
    await page.clock.resume();
    await page.getByRole("button", { name: /^Terminal menu/ }).click();
    await page.getByRole("menuitem", { name: /^Paste/ }).click();
    // Nowhere else on the page, or this refuses to choose.
    await page.getByText(/The browser pastes by key only/).waitFor();
    await keepScreenshot(page, "terminal-messages");
    const inSight = [chip(page), page.getByRole("button", { name: "Reconnect now" }), bar(page), rows(page)];
    const message = await messages.boundingBox();
    for (const one of inSight) expect(overlap(message, await one.boundingBox()), `${one}`).toBe(false);
    expect(overlap(await bar(page).boundingBox(), await rows(page).getByText("prompt$").boundingBox())).toBe(
      false,
    );
  });

  it("TERM-10 finds the same shell after a reload, and does not answer old questions of programs again", async () => {
    const { page, asked } = await come();
    await openedAndReady(page);
    await expect.poll(() => page.url()).toContain(sessionId);
    await page.reload();
    const client = await gateway.nextClient();
    expect(asked.tokens.at(-1)).toEqual({ session_id: sessionId });
    const old = "old question \x1b[c";
    client.say(ready(0, old.length));
    client.show(old);
    await rows(page).getByText("old question").waitFor();
    client.show("\r\nnew question \x1b[5n");
    await client.until((each) => typed(each).length > 0);
    expect(typed(client).toString()).toBe("\x1b[0n");
  });

  it("TERM-10 shows how the shell ended, and opens another", async () => {
    const { page, asked } = await come();
    const client = await openedAndReady(page);
    client.show("$ exit 3\r\nlogout\r\n");
    client.say({ type: "exit", code: 3, signal: null });
    await page.getByText("The shell has ended with code 3.").waitFor();
    await keepScreenshot(page, "terminal-ended");
    await page.getByRole("button", { name: "Open a new shell" }).click();
    const next = await gateway.nextClient();
    expect(asked.tokens.at(-1)).toEqual({});
    next.say(ready());
    await phase(page, "ready");
    await expect.poll(() => rows(page).textContent()).not.toContain("logout");
  });

  it("TERM-10 pastes a megabyte in pieces that arrive whole", async () => {
    const { page } = await come();
    const client = await openedAndReady(page);
    const text = `${randomBytes(375_000).toString("hex")}${"ü".repeat(125_000)}`;
    await page.evaluate(`(() => {
      const clipboardData = new DataTransfer();
      clipboardData.setData("text/plain", ${JSON.stringify(text)});
      const event = new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true });
      document.querySelector(".xterm-helper-textarea").dispatchEvent(event);
    })()`);
    await client.until((each) => each.pieces.reduce((sum, { length }) => sum + length, 0) >= 1_000_000);
    expect(digest(typed(client))).toBe(digest(Buffer.from(text)));
    expect(Math.max(...client.pieces.map(({ length }) => length))).toBeLessThanOrEqual(64 * 1024);
  });

  it("TERM-10 acknowledges what it has shown, so that output never stops", async () => {
    const { page } = await come();
    const client = await openedAndReady(page);
    const chunk = Buffer.from("0123456789abcdef".repeat(2_048));
    for (let sent = 0; sent < 4 * 1024 * 1024; sent += chunk.length) {
      client.show(chunk);
      const due = sent - 256 * 1024;
      await client.until(
        ({ frames }) => due < 0 || frames.some((each) => each.type === "ack" && each.bytes >= due),
      );
    }
    const acknowledged = client.frames.flatMap((each) => (each.type === "ack" ? [each.bytes] : []));
    expect(acknowledged).toEqual(acknowledged.toSorted((a, b) => a - b));
  });

  it("TERM-10 tells the size at once and whenever the window changes", async () => {
    const { page } = await come();
    const client = await openedAndReady(page);
    const sizes = () => client.frames.flatMap((each) => (each.type === "resize" ? [each] : []));
    await client.until(() => sizes().length > 0);
    const [first = { cols: 0, rows: 0 }] = sizes();
    expect(first.cols).toBeGreaterThan(120);
    await page.setViewportSize({ width: 800, height: 500 });
    await client.until(() => sizes().some(({ cols, rows }) => cols < first.cols && rows < first.rows));
  });

  it("TERM-10 has size of text, colours, search, copy and links, and remembers the look", async () => {
    const { page, complaints } = await come({ permissions: ["clipboard-read", "clipboard-write"] });
    const client = await openedAndReady(page);
    client.show(picture);
    await rows(page).getByText("https://example.com/docs").waitFor();
    await keepScreenshot(page, "terminal-light");
    const larger = page.getByRole("button", { name: "Larger text" });
    await larger.click();
    await page.getByRole("button", { name: "Size of the text 15, reset" }).waitFor();
    // Light on the dark bar, also under the mouse.
    const hovered = `getComputedStyle(document.querySelector('[aria-label="Larger text"]')).backgroundColor`;
    await expect.poll(() => page.evaluate(hovered)).toBe("rgb(20, 57, 60)");
    await keyboardIsBack(page);
    await page.keyboard.type("1 ");
    await page.getByRole("button", { name: /^Terminal menu/ }).click();
    await keepScreenshot(page, "terminal-menu");
    await page.getByRole("menuitemradio", { name: "High contrast" }).click();
    await keepScreenshot(page, "terminal-contrast");
    await page.getByRole("menu").waitFor({ state: "detached" });
    await keyboardIsBack(page);
    await page.keyboard.type("2 ");
    await page.keyboard.press("Control+Shift+M");
    await page.getByRole("menuitem", { name: "End the shell" }).click();
    // It takes the keyboard a moment after it is seen.
    await page.locator('[role="alertdialog"]:focus-within').waitFor();
    await page.keyboard.type("nothing");
    await page.keyboard.press("Escape");
    await page.getByRole("alertdialog").waitFor({ state: "detached" });
    await keyboardIsBack(page);
    await page.keyboard.type("3 ");
    await client.until((each) => typed(each).toString() === "1 2 3 ");
    await page.keyboard.press("Control+Shift+F");
    await page.getByLabel("Text to find").fill("kelp");
    await page.getByText(/\d of 2/).waitFor();
    await keepScreenshot(page, "terminal-search");
    await page.keyboard.press("Escape");
    await keyboardIsBack(page);
    await page.keyboard.press("Control+Shift+M");
    await page.getByRole("menuitem", { name: "Select all" }).click();
    await page.getByRole("menu").waitFor({ state: "detached" });
    await keyboardIsBack(page);
    await page.keyboard.press("Control+Shift+C");
    await expect.poll(() => page.evaluate("navigator.clipboard.readText()")).toContain("kelp forest");
    const popup = page.context().waitForEvent("page");
    await page.context().route("https://example.com/**", (route) => route.fulfill({ body: "docs" }));
    const link = await rows(page).getByText("https://example.com/docs").boundingBox();
    await page.mouse.click((link?.x ?? 0) + 90, (link?.y ?? 0) + 5);
    await (await popup).waitForURL("https://example.com/docs");
    expect(await (await popup).evaluate("window.opener")).toBeNull();
    await page.reload();
    (await gateway.nextClient()).say(ready());
    await page.getByRole("button", { name: "Size of the text 15, reset" }).waitFor();
    expect(complaints).toEqual([]);
  });

  it("TERM-10 draws with WebGL, and goes on with elements when that is taken away", async () => {
    const { page, complaints } = await come({ browser: drawing, colorScheme: "dark" });
    const client = await openedAndReady(page);
    const drawn = ".xterm-screen canvas:not(.xterm-link-layer)";
    client.show(`${picture}\x1b[5n`);
    await client.until((each) => typed(each).length > 0);
    await page.locator(drawn).first().waitFor();
    expect(await rows(page).count()).toBe(0);
    await keepScreenshot(page, "terminal-dark");
    await page.evaluate(
      `document.querySelector("${drawn}").getContext("webgl2").getExtension("WEBGL_lose_context").loseContext()`,
    );
    await rows(page).getByText("kelp forest").first().waitFor();
    client.show("still here");
    await rows(page).getByText("still here").waitFor();
    expect(complaints.filter((each) => !/webgl/i.test(each))).toEqual([]);
  });

  it.each(["light", "dark"] as const)(
    "TERM-10 fits a telephone in %s, with the keys it lacks",
    async (colorScheme) => {
      const { page, complaints } = await come({
        viewport: { width: 390, height: 844 },
        colorScheme,
        hasTouch: true,
      });
      const client = await opened(page);
      client.say(status("token_ready", 12));
      client.say(status("browser_ws_ready", 48));
      await page.locator('[data-step="browser_ws_ready"][data-state="ok"]').waitFor();
      await keepScreenshot(page, `narrow-${colorScheme}-terminal-connecting`);
      client.say(ready());
      await phase(page, "ready");
      client.show(picture);
      await rows(page).getByText("kelp forest").first().waitFor();
      const keys = page.getByRole("toolbar", { name: "Keys" });
      await keys.getByRole("button", { name: "Esc" }).click();
      await keys.getByRole("button", { name: "Up" }).click();
      await keys.getByRole("button", { name: "Ctrl" }).click();
      await keyboardIsBack(page);
      await page.keyboard.type("c");
      await page.keyboard.type("c");
      await client.until((each) => typed(each).toString() === "\x1b\x1b[A\x03c");
      const overflow = await page.evaluate("document.documentElement.scrollWidth - window.innerWidth");
      expect(overflow).toBeLessThanOrEqual(0);
      await keepScreenshot(page, `narrow-${colorScheme}-terminal`);
      client.say({ type: "unresponsive", cause: "silent", since: new Date().toISOString() });
      await phase(page, "unresponsive");
      await keepScreenshot(page, `narrow-${colorScheme}-terminal-unresponsive`);
      const entry = terminalFailures.terminal_taken_over;
      client.say({ type: "error", code: "terminal_taken_over", ...entry, correlation_id: correlationId });
      await page.getByRole("button", { name: "Take it back here" }).waitFor();
      await keepScreenshot(page, `narrow-${colorScheme}-terminal-taken-over`);
      const failing = await opened(page);
      failing.say({
        type: "error",
        code: "terminal_node_stream_timeout",
        ...terminalFailures.terminal_node_stream_timeout,
        correlation_id: correlationId,
      });
      await phase(page, "failed");
      await keepScreenshot(page, `narrow-${colorScheme}-terminal-failed`);
      for (const where of ["/allocations", `/allocations/${allocationId}`]) {
        await page.goto(api.url + where);
        await page.getByRole("link", { name: "Open terminal of alice on rock-1" }).waitFor();
        expect(
          await page.evaluate("document.documentElement.scrollWidth - window.innerWidth"),
        ).toBeLessThanOrEqual(0);
        await keepScreenshot(
          page,
          `narrow-${colorScheme}-active${where.split("/").length > 2 ? "-allocation" : ""}`,
        );
      }
      expect(complaints).toEqual([]);
    },
  );

  it("TERM-08 shows the chain of the last terminals on the allocation's page", async () => {
    const at = (ms: number) => new Date(Date.parse("2026-01-01T00:00:00.000Z") + ms).toISOString();
    const common = {
      allocation_id: allocationId,
      username: "alice",
      node_id: nodeId,
      node_name: "rock-1",
      task_id: null,
      opened_by: "member@reef.example",
      correlation_id: correlationId,
      created_at: at(0),
      attached: false,
      detached_at: null,
      ends_at: null,
      ending: false,
      closed_at: null,
      exit: null,
    };
    const reached = (ms: number) => ({ at: at(ms), correlation_id: correlationId });
    const chain = Object.fromEntries(readinessSteps.map((step, index) => [step, reached(3 + index * 12)]));
    const lost = { at: at(90_000), correlation_id: "attach-1" };
    const terminals: TerminalSession[] = [
      { ...common, id: uuidv7(), state: "open", chain, failure: null },
      {
        ...common,
        id: uuidv7(),
        state: "failed",
        chain: {
          ...{ token_ready: reached(3), browser_ws_ready: reached(15), terminal_open_sent: reached(30) },
          failed: reached(15_000),
        },
        failure: {
          code: "terminal_node_stream_timeout",
          ...presentReason("terminal_node_stream_timeout"),
          hop: "node_terminal_reachability",
          owner: "network",
          detail: null,
          ...reached(15_000),
        },
      },
      {
        ...common,
        id: uuidv7(),
        opened_by: "killed@reef.example",
        state: "failed",
        chain: { ...chain, failed: lost },
        failure: {
          ...{ code: "terminal_pty_failed", ...presentReason("terminal_pty_failed") },
          ...{ hop: "workload_terminal_startup_failure", owner: "node" },
          ...{ detail: "The holder was killed.", ...lost },
        },
      },
      { ...common, id: uuidv7(), state: "closed", chain, failure: null, exit: { code: 0, signal: null } },
    ];
    const { page, complaints } = await come({ terminals });
    await page.goto(`${api.url}/allocations/${allocationId}`);
    const list = page.getByRole("list", { name: "Terminals" });
    await list.getByText("ready after 51 ms").first().waitFor();
    await list.getByText(terminalFailures.terminal_node_stream_timeout.message).waitFor();
    await list.getByRole("button", { name: /^Failed .*member.*: details$/ }).click();
    await list.locator('[data-step="node_stream_connected"][data-state="failed"]').waitFor();
    await list.locator('[data-step="failed"]').getByText("15.0 s").waitFor();
    await list.getByText("The holder was killed.").waitFor();
    await list.getByRole("button", { name: /^Failed .*killed.*: details$/ }).click();
    await list.locator('[data-step="pty_ready"][data-state="ok"]').waitFor();
    await list.locator('[data-step="failed"]').getByText("1 min 30 s").waitFor();
    await list.getByText("Can be fixed by the operator of the node").waitFor();
    await keepScreenshot(page, "allocation");
    const back = list.getByRole("link", { name: "Go back to it" });
    expect(await back.getAttribute("href")).toContain(`session=${terminals[0]?.id}`);
    expect(complaints).toEqual([]);
  });

  it("OPS-01 has nothing that axe-core finds: connecting, ready, searching, in its menu, failed", async () => {
    const { page } = await come();
    const client = await opened(page);
    client.say(status("token_ready", 4));
    await page.getByRole("list", { name: "Readiness chain" }).waitFor();
    const found = await violationsOf(page, "connecting");
    client.say(ready());
    await phase(page, "ready");
    client.show("alice@rock-1:~$ ");
    found.push(...(await violationsOf(page, "ready")));
    await page.getByRole("button", { name: /^Search/ }).click();
    await page.getByLabel("Text to find").fill("alice");
    found.push(...(await violationsOf(page, "searching")));
    await page.getByRole("button", { name: /^Terminal menu/ }).click();
    await page.getByRole("menu").waitFor();
    found.push(...(await violationsOf(page, "menu")));
    await page.keyboard.press("Escape");
    const entry = terminalFailures.terminal_pty_failed;
    client.say({ type: "error", code: "terminal_pty_failed", ...entry, correlation_id: correlationId });
    await phase(page, "failed");
    expect([...found, ...(await violationsOf(page, "failed"))]).toEqual([]);
  });

  it("loads the terminal's code on no other page", async () => {
    const { page } = await come();
    const scripts: string[] = [];
    page.on("request", (request) => scripts.push(request.url()));
    // Pages load the code of all others a while after the first one stands.
    const others = page.waitForRequest(/TerminalPage/);
    await page.goto(`${api.url}/allocations/${allocationId}`);
    await others;
    await page.waitForLoadState("networkidle");
    expect(scripts.filter((url) => /\/(xterm|screen)-/.test(url))).toEqual([]);
  });
});

const picture = [
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

const digest = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");

/** As a gateway does every few seconds. The page's policy follows within two seconds. */
async function announce(url: string): Promise<void> {
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
