// Opening a terminal in a browser: its readiness chain, its failures, how its shell ends. The way through a real
// gateway to a real shell is in cli/test.

import type { TerminalSession } from "@holdfast/contracts/endpoints/terminals";
import { presentReason } from "@holdfast/contracts/reasons/catalogue";
import { isTerminalFailure, terminalFailures } from "@holdfast/contracts/reasons/terminal";
import { readinessSteps } from "@holdfast/contracts/terminal/frames";
import { uuidv7 } from "@holdfast/kit/uuid";
import { describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { violationsOf } from "../../testkit/browser/axe.ts";
import { keepScreenshot } from "../../testkit/browser/browser.ts";
import { type StandIn, startStandIn } from "../../testkit/gateway/stand-in.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import {
  alert,
  allocationId,
  announce,
  api,
  come,
  correlationId,
  gateway,
  nodeId,
  opened,
  openedAndReady,
  PROMISED_SECONDS,
  path,
  phase,
  prepareTerminalPage,
  ready,
  rows,
  sessionId,
  status,
  stopClock,
  typed,
} from "./support/terminal-page.ts";

describe.skipIf(lacks("chromium"))("a terminal's page", () => {
  prepareTerminalPage();

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

  it("TERM-08 shows the chain of the last terminals on the allocation's page", async () => {
    const at = (ms: number) => new Date(Date.parse("2026-01-01T00:00:00.000Z") + ms).toISOString();
    const common = {
      allocation_id: allocationId,
      lease_id: null,
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
