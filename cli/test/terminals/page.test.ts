// A terminal in a browser, with nothing between that is not real: the page in Chromium, the gateway,
// mutual TLS, the agent, a PTY, a user's shell.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../../scripts/facilities.mjs";
import { violationsOf } from "../../../testkit/browser/axe.ts";
import { keepScreenshot, openChromium, withoutWebgl } from "../../../testkit/browser/browser.ts";
import { type AtPage, signIn } from "../support/at-page.ts";
import { hangChild, openShells, type Shells } from "../support/shells.ts";

const sha256 = (bytes: Buffer | string) => createHash("sha256").update(bytes).digest("hex");

describe.skipIf(lacks("root") || lacks("chromium"))("a terminal in the browser", () => {
  const { visit } = openChromium(withoutWebgl);
  let shells: Shells;
  let me: AtPage;
  beforeAll(async () => {
    shells = await openShells({ HOLDFAST_TERMINALS_PER_USER: "3" });
    me = await signIn(await visit(), shells);
  });
  afterAll(() => shells.cleanUp());

  it("TERM-08 is one click away, shows its chain, and is a shell of the allocation's user", async () => {
    await me.openTerminal();
    await me.ready();
    expect(await me.ask("id -un")).toBe(shells.allocation.username);
    expect(me.page.url()).not.toContain("hfp_");
    await keepScreenshot(me.page, "terminal-real");
  });

  it("TERM-10 shows UTF-8 and emoji, typed and printed", async () => {
    await me.type("echo 'grüße, 你好 🐙🚀' | tee greeting; ls --color=always /\n");
    await me.shows("你好");
    await me.ask("true");
    expect(readFileSync(`${shells.allocation.home}/greeting`, "utf8")).toBe("grüße, 你好 🐙🚀\n");
    await me.type(
      "clear; cat greeting; printf '\\e[1;32mgreen \\e[7m inv%s \\e[0m plain\\n' erse; ls --color=always /\n",
    );
    await me.shows("inverse");
    await keepScreenshot(me.page, "terminal-emoji");
  });

  it("TERM-10 tells the shell the size of the window, also when it changes", async () => {
    const before = await me.ask("stty size");
    await me.page.setViewportSize({ width: 900, height: 600 });
    await expect.poll(() => me.ask("stty size")).not.toBe(before);
    const [lines = 0, columns = 0] = (await me.ask("stty size")).split(" ").map(Number);
    expect(lines).toBeGreaterThan(10);
    expect(columns).toBeGreaterThan(60);
    await me.page.setViewportSize({ width: 1440, height: 900 });
    await expect.poll(() => me.ask("stty size")).toBe(before);
  });

  it("TERM-10 pastes a megabyte that arrives whole", async () => {
    const text = Array.from({ length: 16_384 }, (_, index) => `${String(index).padStart(62, "0")}x\n`).join("");
    await me.type("clear; stty -echo; echo read''ing; cat > pasted; stty echo; echo wri''tten\n");
    // The prompt asks for pastes between marks, and `cat` would keep them.
    await me.shows("reading");
    await me.page.evaluate(`(() => {
      const clipboardData = new DataTransfer();
      clipboardData.setData("text/plain", ${JSON.stringify(text)});
      const event = new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true });
      document.querySelector(".xterm-helper-textarea").dispatchEvent(event);
    })()`);
    await me.page.keyboard.press("Control+d");
    await me.shows("written");
    expect(sha256(readFileSync(`${shells.allocation.home}/pasted`))).toBe(sha256(text));
  });

  it.skipIf(lacks("vi"))(
    "TERM-10 runs a full-screen program, which takes over and restores the screen",
    async () => {
      await me.type("clear; echo before''hand; vi -u NONE poem\n");
      // Below the text, a mark in every line: the name of the file stands in the command, too.
      await expect.poll(() => me.screen()).toMatch(/(~\s*){5}/);
      expect(await me.screen()).not.toContain("beforehand");
      await me.type("iThe kelp holds fast.\n🐙 So do we.");
      await me.shows("So do we.");
      await keepScreenshot(me.page, "terminal-full-screen");
      await me.page.keyboard.press("Escape");
      await me.type(":wq\n");
      await me.shows("beforehand");
      await me.ask("true");
      expect(readFileSync(`${shells.allocation.home}/poem`, "utf8")).toBe("The kelp holds fast.\n🐙 So do we.\n");
    },
  );

  it("TERM-10 finds the same shell after a reload, with what it showed", async () => {
    const shell = await me.ask("echo $$");
    await me.type("clear; echo before''the''reload\n");
    await me.shows("beforethereload");
    await me.page.reload();
    await me.ready();
    await me.shows("beforethereload");
    await keepScreenshot(me.page, "terminal-reloaded");
    expect(await me.ask("echo $$")).toBe(shell);
  });

  it("TERM-10 shows which of node and gateway does not answer, and comes back with what was typed meanwhile", async () => {
    const shell = await me.ask("echo $$");
    const chip = me.page.locator("header [data-phase]");
    await me.type("clear\n");
    for (const [hung, sentence] of [
      ["agent", /^The node has not answered since/],
      ["gateway", "The gateway does not answer."],
    ] as const) {
      const wake = hangChild(shells, hung);
      await me.page.getByText(sentence).waitFor();
      expect(await chip.textContent()).toMatch(/^(Unresponsive|Reconnecting)$/);
      await me.type(`echo ${hung}''$$\n`);
      await me.page.getByText(/bytes typed will be sent/).waitFor();
      await keepScreenshot(me.page, `terminal-${hung}-hangs`);
      wake();
      await me.ready();
      await me.shows(`${hung}${shell}`);
    }
  });

  it("TERM-10 says how the shell ended, and opens another by a click", async () => {
    const shell = await me.ask("echo $$");
    await me.type("exit 4\n");
    await me.page.getByText("The shell has ended with code 4.").waitFor();
    await me.page.getByRole("button", { name: "Open a new shell" }).click();
    await me.ready();
    expect(await me.ask("echo $$")).not.toBe(shell);
  });

  it("TERM-10 at the limit leads to the list of one's terminals, where ending one makes room", async () => {
    const { page } = me;
    const shell = await me.ask("echo $$");
    for (let more = 0; more < 2; more += 1) {
      await me.openTerminal();
      await me.ready();
    }
    await me.openTerminal();
    const alert = page.locator('[role="alert"][data-code="terminal_sessions_exhausted"]');
    await alert.getByText("3 of 3 terminals of yours are open, detached ones included.").waitFor();
    await keepScreenshot(page, "terminal-limit");
    await page.getByRole("link", { name: "My terminals" }).click();
    await page.getByText("3 of 3 open. Detached terminals count too, until they end.").waitFor();
    const { username } = shells.allocation;
    const rows = page.getByRole("row", { name: new RegExp(`${username} on ${shells.node.name}`) });
    await expect
      .poll(() => rows.filter({ hasText: /Detached.*ago, ends in|Detached.*now, ends in/ }).count())
      .toBe(3);
    await keepScreenshot(page, "my-terminals");
    expect(await violationsOf(page, "my terminals")).toEqual([]);
    const end = page.getByRole("button", { name: `End the terminal of ${username}` });
    await end.first().click();
    await page.getByRole("button", { name: "End terminal" }).click();
    await expect.poll(() => rows.count()).toBe(2);
    await page.getByText("2 of 3 open.").waitFor();
    await page
      .getByRole("link", { name: `Open the terminal of ${username}` })
      .last()
      .click();
    await me.ready();
    expect(await me.ask("echo $$"), "the oldest is the first one").toBe(shell);
    await me.openTerminal();
    await me.ready();
  });

  it("SEC-03 nothing of it is refused by the page's own policy", () => {
    expect(me.complaints).toEqual([]);
  });
});
