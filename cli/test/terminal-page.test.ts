// A terminal in a browser, with nothing between that is not real: the page in Chromium, the gateway,
// mutual TLS, the agent, a PTY, a user's shell.

import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PASSWORD } from "../../control-plane/test/support/api.ts";
import { lacks } from "../../scripts/facilities.mjs";
import { keepScreenshot, openChromium, withoutWebgl } from "../../web/test/browser.ts";
import { openShells, type Shells } from "./support/shells.ts";

const sha256 = (bytes: Buffer | string) => createHash("sha256").update(bytes).digest("hex");

describe.skipIf(lacks("root") || lacks("chromium"))("a terminal in the browser", () => {
  const { visit } = openChromium(withoutWebgl);
  let shells: Shells;
  let page: Page;
  let complaints: string[];
  beforeAll(async () => {
    shells = await openShells();
    ({ page, complaints } = await visit());
    const { url } = await shells.json<{ url: string }>(["admin", "link"]);
    await page.goto(url);
    await page.getByLabel("Email").fill("root@example.com");
    await page.getByLabel("Your name").fill("First Admin");
    await page.getByLabel("New password").fill(PASSWORD);
    await page.getByRole("button", { name: "Create account" }).click();
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  }, 120_000);
  afterAll(() => shells.cleanUp());

  const ready = () => page.locator('[data-phase="ready"]').waitFor();
  const rows = () => page.locator(".xterm-rows");
  const shows = (text: string) => rows().getByText(text).first().waitFor();
  const type = (text: string) => page.keyboard.type(text);

  /** What one command printed. What is typed differs from it, because the screen shows that too. */
  async function ask(line: string): Promise<string> {
    const mark = randomBytes(4).toString("hex");
    await type(`clear; echo "{$(${line})}"${mark.slice(0, 4)}''${mark.slice(4)}\n`);
    await shows(mark);
    return new RegExp(`\\{([^{}]*)\\}${mark}`).exec((await rows().textContent()) ?? "")?.[1] ?? "";
  }

  it("TERM-08 is one click away, shows its chain, and is a shell of the allocation's user", async () => {
    const { username, id } = shells.allocation;
    await page.goto(`${(await shells.up.ready).api_url}/allocations/${id}`);
    await page.getByRole("link", { name: `Open terminal of ${username} on ${shells.node.name}` }).click();
    await ready();
    expect(await ask("id -un")).toBe(username);
    expect(page.url()).not.toContain("hfp_");
    await keepScreenshot(page, "terminal-real");
  });

  it("TERM-10 shows UTF-8 and emoji, typed and printed", async () => {
    await type("echo 'grüße, 你好 🐙🚀' | tee greeting; ls --color=always /\n");
    await shows("你好");
    await ask("true");
    expect(readFileSync(`${shells.allocation.home}/greeting`, "utf8")).toBe("grüße, 你好 🐙🚀\n");
    await type(
      "clear; cat greeting; printf '\\e[1;32mgreen \\e[7m inv%s \\e[0m plain\\n' erse; ls --color=always /\n",
    );
    await shows("inverse");
    await keepScreenshot(page, "terminal-emoji");
  });

  it("TERM-10 tells the shell the size of the window, also when it changes", async () => {
    const before = await ask("stty size");
    await page.setViewportSize({ width: 900, height: 600 });
    await expect.poll(() => ask("stty size")).not.toBe(before);
    const [lines = 0, columns = 0] = (await ask("stty size")).split(" ").map(Number);
    expect(lines).toBeGreaterThan(10);
    expect(columns).toBeGreaterThan(60);
    await page.setViewportSize({ width: 1440, height: 900 });
    await expect.poll(() => ask("stty size")).toBe(before);
  });

  it("TERM-10 pastes a megabyte that arrives whole", async () => {
    const text = Array.from({ length: 16_384 }, (_, index) => `${String(index).padStart(62, "0")}x\n`).join("");
    await type("clear; stty -echo; cat > pasted; stty echo; echo wri''tten\n");
    await page.evaluate(`(() => {
      const clipboardData = new DataTransfer();
      clipboardData.setData("text/plain", ${JSON.stringify(text)});
      const event = new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true });
      document.querySelector(".xterm-helper-textarea").dispatchEvent(event);
    })()`);
    await page.keyboard.press("Control+d");
    await shows("written");
    expect(sha256(readFileSync(`${shells.allocation.home}/pasted`))).toBe(sha256(text));
  });

  it.skipIf(lacks("vi"))("TERM-10 runs a full-screen program, which takes and gives back the screen", async () => {
    await type("clear; echo before''hand; vi -u NONE poem\n");
    await shows("poem");
    await expect.poll(() => rows().textContent()).not.toContain("beforehand");
    await type("iThe kelp holds fast.\n🐙 So do we.");
    await shows("So do we.");
    await keepScreenshot(page, "terminal-full-screen");
    await page.keyboard.press("Escape");
    await type(":wq\n");
    await shows("beforehand");
    await ask("true");
    expect(readFileSync(`${shells.allocation.home}/poem`, "utf8")).toBe("The kelp holds fast.\n🐙 So do we.\n");
  });

  it("TERM-10 finds the same shell after a reload, with what it showed", async () => {
    const shell = await ask("echo $$");
    await type("clear; echo before''the''reload\n");
    await shows("beforethereload");
    await page.reload();
    await ready();
    await shows("beforethereload");
    await keepScreenshot(page, "terminal-reloaded");
    expect(await ask("echo $$")).toBe(shell);
  });

  it("TERM-05 says why there is no shell, and opens one with the same click after the repair", async () => {
    const { username, home } = shells.allocation;
    await type("exit 4\n");
    await page.getByText("The shell has ended with code 4.").waitFor();
    const uid = execFileSync("id", ["-u", username], { encoding: "utf8" }).trim();
    execFileSync("userdel", ["--force", username], { stdio: "ignore" });
    await page.getByRole("button", { name: "Open a new shell" }).click();
    const alert = page.getByRole("alert");
    await alert.getByText(`There is no user ${username} on this node.`).waitFor();
    expect(await alert.getAttribute("data-code")).toBe("terminal_pty_failed");
    await keepScreenshot(page, "terminal-failed-real");
    execFileSync("useradd", ["--uid", uid, "--home-dir", String(home), "--shell", "/bin/bash", username], {
      stdio: "ignore",
    });
    await page.getByRole("button", { name: "Try again" }).click();
    await ready();
    expect(await ask("id -un")).toBe(username);
  });

  it("SEC-03 nothing of it is refused by the page's own policy", () => {
    expect(complaints).toEqual([]);
  });
});
