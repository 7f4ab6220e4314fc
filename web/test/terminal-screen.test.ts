// The terminal's screen: input, output, size, look and drawing.

import { randomBytes } from "node:crypto";
import { terminalFailures } from "@holdfast/contracts/reasons/terminal";
import { describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { keepScreenshot } from "../../testkit/browser/browser.ts";
import {
  allocationId,
  api,
  come,
  correlationId,
  digest,
  drawing,
  gateway,
  keyboardIsBack,
  opened,
  openedAndReady,
  phase,
  picture,
  prepareTerminalPage,
  ready,
  rows,
  status,
  typed,
} from "./support/terminal-page.ts";

describe.skipIf(lacks("chromium"))("a terminal's screen", () => {
  prepareTerminalPage();

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
});
