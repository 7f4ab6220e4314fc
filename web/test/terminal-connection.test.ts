// A terminal's page whose connection is lost: the same shell, nothing typed or printed is lost.

import { ApiError } from "@holdfast/contracts/errors";
import { terminalFailures } from "@holdfast/contracts/reasons/terminal";
import { DETECTION_MS, PING_MS } from "@holdfast/contracts/terminal/liveness";
import { describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { keepScreenshot } from "../../testkit/browser/browser.ts";
import type { StandInClient } from "../../testkit/gateway/stand-in.ts";
import {
  alert,
  api,
  bar,
  chip,
  come,
  correlationId,
  gateway,
  keyboardIsBack,
  opened,
  openedAndReady,
  overlap,
  path,
  phase,
  prepareTerminalPage,
  ready,
  rows,
  sessionId,
  stopClock,
  typed,
} from "./support/terminal-page.ts";

describe.skipIf(lacks("chromium"))("a terminal's page whose connection is lost", () => {
  prepareTerminalPage();

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
    // The clock may have run past the detection and the first pauses: then tries were over before the click.
    await bar(page)
      .getByText(/^try [2-9]$/)
      .waitFor();
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
});
