// The agent's terminals with a real holder, a real PTY and a real shell of whoever runs the tests.

import { execFileSync, spawn } from "node:child_process";
import { closeSync, openSync, readdirSync, readlinkSync } from "node:fs";
import {
  MOST_FRAME_BYTES,
  MOST_INPUT_BYTES,
  SCROLLBACK_BYTES,
  WINDOW_BYTES,
} from "@holdfast/contracts/terminal/frames";
import { commandLine } from "@holdfast/kit/processes";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Launch } from "../src/drivers/pty/driver.ts";
import { commandOf } from "../src/drivers/pty/launch.ts";
import { ptyDriver } from "../src/drivers/pty/pty-driver.ts";
import { ask, isRunning, spawnedBy, terminalHost } from "./support/terminals.ts";

describe("a terminal", () => {
  it("TERM-03 is told to the gateway when its shell is up, and passes bytes both ways", async () => {
    const host = await terminalHost();
    const { stream, pid, sessionId } = await host.open();
    expect(stream.frames[0]).toMatchObject({ type: "hello", offset: 0 });
    expect(stream.headers).toMatchObject({ "x-correlation-id": `c-${sessionId}`, "x-holdfast-boot": "boot" });
    expect(await stream.attach()).toMatchObject({ offset: 0, replay: 0 });
    expect(await ask(stream, "echo $$")).toBe(String(pid));
    stream.type("exit 7\r");
    expect(await stream.frame("exit")).toEqual({ type: "exit", code: 7, signal: null });
    await expect.poll(() => host.sockets("shell")).toEqual([]);
    await expect.poll(() => stream.closed()).toBe(true);
    expect(host.terminals.count()).toBe(0);
    expect(host.failures).toEqual([]);
  });

  it("TERM-10 has the environment of a login and nothing of the agent's", async () => {
    const host = await terminalHost();
    const { stream, sessionId } = await host.open();
    await stream.attach();
    const seen = Object.fromEntries(
      (await ask(stream, "env")).split("\n").map((line) => line.split(/=(.*)/s, 2) as [string, string]),
    );
    const { name, home, shell } = host.user;
    expect(seen).toMatchObject({
      ...{ HOME: home, USER: name, LOGNAME: name, SHELL: shell, PWD: home },
      ...{ TERM: "xterm-256color", COLORTERM: "truecolor", HOLDFAST_SESSION_ID: sessionId },
    });
    expect(seen["LANG"]).toMatch(/utf-?8$/i);
    expect(Object.keys(seen).filter((key) => /^(VITEST|npm_|NODE_|HOLDFAST_(?!SESSION))/.test(key))).toEqual([]);
    expect(await ask(stream, "shopt -q login_shell && echo login")).toBe("login");
    expect(await ask(stream, "tty; [ -O $(tty) ] && echo mine")).toMatch(/^\/dev\/pts\/\d+\nmine$/);
    expect(await ask(stream, "grep -E '^Sig(Ign|Blk)' /proc/self/status | cut -f2 | sort -u")).toBe(
      "0".repeat(16),
    );
  });

  it("TERM-10 leaves no descriptor of the holder's to the shell", async () => {
    const host = await terminalHost();
    const { stream, pid } = await host.open();
    await stream.attach();
    await ask(stream, "echo its prompt is there");
    const open = readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`));
    expect(open.filter((target) => /^(socket:|anon_inode:|\/dev\/ptmx)/.test(target))).toEqual([]);
  });

  it("TERM-10 leaves neither a descriptor nor the umask of whoever started the agent to the shell", async () => {
    const inherited = openSync("/etc/passwd", "r");
    onTestFinished(() => closeSync(inherited));
    // Node.js itself looks after the first sixteen.
    const stdio = [...Array<"ignore">(24).fill("ignore"), inherited];
    const launch: Launch = ({ directory: cwd, ...holder }) => {
      const [file = "", ...args] = commandOf(holder);
      const umask = process.umask(0);
      spawn(file, args, { cwd, env: {}, detached: true, stdio }).unref();
      process.umask(umask);
      return { onFailure() {} };
    };
    const host = await terminalHost({ driver: { ...ptyDriver(), launch } });
    const { stream, pid } = await host.open();
    await stream.attach();
    expect(await ask(stream, "umask")).toBe("0022");
    const open = readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`));
    expect(open.filter((target) => !target.startsWith("/dev/pts/"))).toEqual([]);
  });

  it("TERM-10 has the size it was opened with, and any later one", async () => {
    const host = await terminalHost();
    const { stream } = await host.open({}, { size: { cols: 101, rows: 33 } });
    await stream.attach({ cols: 101, rows: 33 });
    expect(await ask(stream, "stty size")).toBe("33 101");
    stream.send({ type: "resize", cols: 132, rows: 50 });
    expect(await ask(stream, "stty size")).toBe("50 132");
    await stream.attach({ cols: 90, rows: 20 });
    expect(await ask(stream, "stty size")).toBe("20 90");
  });

  it("TERM-10 tells a program to draw again when somebody attaches with the same size", async () => {
    const host = await terminalHost();
    const { stream } = await host.open();
    await stream.attach();
    stream.type(`sh -c 'trap "echo dra"wn WINCH; echo dra""wing; while :; do sleep 0.05; done'\r`);
    await expect.poll(() => stream.text()).toMatch(/^drawing/m);
    await stream.attach();
    await expect.poll(() => stream.text()).toMatch(/^drawn/m);
    stream.type("\x03");
    expect(await ask(stream, "stty size")).toBe("24 80");
  });

  it.for([
    ["exit 0", { code: 0, signal: null }],
    ["exit 42", { code: 42, signal: null }],
    ["kill -9 $$", { code: null, signal: "SIGKILL" }],
    ["kill -TERM $$; kill -HUP $$", { code: null, signal: "SIGHUP" }],
  ] as const)("TERM-10 tells how its shell ended: %s", async ([command, exit]) => {
    const host = await terminalHost();
    const { stream } = await host.open();
    await stream.attach();
    stream.type(`${command}\r`);
    expect(await stream.frame("exit")).toEqual({ type: "exit", ...exit });
  });

  it("TERM-10 shows the last output of a shell before it tells its end", async () => {
    const host = await terminalHost();
    const { stream } = await host.open();
    await stream.attach();
    stream.type("seq 20000; echo the-very-last; exit\r");
    await stream.frame("exit");
    expect(stream.text().trimEnd()).toMatch(/\n20000\r\nthe-very-last(\r\nlogout)?$/);
  });

  it("TERM-10 passes UTF-8 and every byte unchanged", async () => {
    const host = await terminalHost();
    const { stream } = await host.open();
    await stream.attach();
    expect(await ask(stream, "echo 'grüße 🌊 日本語'")).toBe("grüße 🌊 日本語");
    stream.type(
      "stty raw -echo; printf 'go\\n'; head -c 256 | od -An -v -tu1 | tr -s ' \\n' ' '; stty sane; printf 'ov%s' er\r",
    );
    await expect.poll(() => stream.text()).toMatch(/go\n/);
    stream.type(Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)));
    await expect.poll(() => stream.text()).toContain("over");
    expect(stream.text()).toContain(Array.from({ length: 256 }, (_, byte) => byte).join(" "));
  });

  it("TERM-10 takes a paste of a megabyte while the program prints as much", async () => {
    const host = await terminalHost();
    const { stream } = await host.open();
    await stream.attach();
    stream.acknowledgeAll();
    const line = `${"x".repeat(99)}\n`;
    const lines = 10_486;
    stream.type("stty -echo; printf 'be%s' gun; cat | tee /dev/tty | md5sum\r");
    await expect.poll(() => stream.text()).toContain("begun");
    const pasted = Buffer.from(line.repeat(lines));
    for (let at = 0; at < pasted.length; at += 300_000) stream.type(pasted.subarray(at, at + 300_000));
    stream.type("\x04");
    const digest = execFileSync("md5sum", { input: pasted, encoding: "utf8" }).split(" ")[0] ?? "";
    await expect.poll(() => stream.text().slice(-200)).toContain(digest);
    expect(stream.bytes()).toBeGreaterThan(pasted.length);
  });

  it("TERM-10 stops reading a program that writes more than is acknowledged, and says so once", async () => {
    const host = await terminalHost();
    const { stream } = await host.open();
    await stream.attach();
    stream.type("yes\r");
    const paused = await stream.frame("paused");
    expect(paused.unacknowledged).toBe(WINDOW_BYTES);
    await expect.poll(() => stream.bytes()).toBe(WINDOW_BYTES);
    stream.send({ type: "ack", bytes: 100_000 });
    await expect.poll(() => stream.bytes()).toBe(WINDOW_BYTES + 100_000);
    stream.send({ type: "ack", bytes: 10_000_000 }); // More than it ever sent: it has all, no more.
    await expect.poll(() => stream.bytes()).toBe(2 * WINDOW_BYTES + 100_000);
    stream.type("\x03");
    stream.acknowledgeAll();
    expect(await ask(stream, "echo still here")).toBe("still here");
    expect(stream.frames.filter((one) => one.type === "paused").length).toBeLessThanOrEqual(3);
  });

  it("TERM-10 lets a program write on while nobody is attached, and keeps the newest of it", async () => {
    const host = await terminalHost();
    const { stream } = await host.open();
    await stream.attach();
    stream.acknowledgeAll();
    await ask(stream, "echo begun");
    stream.send({ type: "detach" });
    stream.type("yes 'grüße' | head -n 200000; echo the-''end\r");
    await stream.attach({ from: 0 });
    await expect.poll(() => stream.text().slice(-300)).toContain("the-end\r\n");
    const again = await stream.attach();
    await expect.poll(() => stream.text().slice(-300)).toContain("the-end\r\n");
    expect(stream.bytes()).toBeLessThanOrEqual(SCROLLBACK_BYTES + 1000);
    expect(stream.bytes()).toBeGreaterThan(SCROLLBACK_BYTES - 1000);
    expect(again.replay).toBeGreaterThan(SCROLLBACK_BYTES - 1000);
    // Whole characters, from the first byte on.
    expect(stream.text()).not.toContain("\ufffd");
  });

  it("TERM-11 goes on exactly where a client had come to", async () => {
    const host = await terminalHost();
    const { stream } = await host.open();
    await stream.attach();
    expect(await ask(stream, "echo one")).toBe("one");
    const seen = stream.bytes();
    const before = Buffer.concat(stream.output);
    const all = await stream.attach({ from: 0 });
    expect(all.offset).toBe(0);
    // The shell may have shown its prompt since.
    expect(all.replay).toBeGreaterThanOrEqual(seen);
    await expect.poll(() => stream.bytes()).toBeGreaterThanOrEqual(seen);
    expect(Buffer.concat(stream.output).subarray(0, seen)).toEqual(before);
    expect(await stream.attach({ from: seen - 3 })).toMatchObject({ offset: seen - 3 });
    expect(await stream.attach({ from: 999_999_999 })).toMatchObject({ replay: 0 });
  });

  it("TERM-10 throws away input that a program does not read, and says so", async () => {
    const host = await terminalHost();
    const { stream } = await host.open();
    await stream.attach();
    await ask(stream, "stty raw -echo; echo ready");
    stream.type("sleep 300\r");
    // Less than the agent itself would hold, however late the holder reads.
    const chunk = Buffer.alloc(MOST_FRAME_BYTES / 2, "y");
    for (let sent = 0; sent <= MOST_INPUT_BYTES; sent += chunk.length) stream.type(chunk);
    const { code, message } = await stream.frame("error");
    expect(code).toBe("terminal_input_overflow");
    // What the terminal itself holds was not discarded.
    const [, discarded] = /: (\d+) bytes that waited for it were discarded/.exec(message) ?? [];
    expect(Number(discarded)).toBeGreaterThan(MOST_INPUT_BYTES);
    expect(Number(discarded)).toBeLessThanOrEqual(MOST_INPUT_BYTES + chunk.length);
  });

  it("TERM-10 ends the shell and what it runs when it is closed", async () => {
    const host = await terminalHost();
    const { stream, pid } = await host.open();
    await stream.attach();
    stream.type("sleep 4242\r");
    const sleeping = () => spawnedBy(pid).find((one) => commandLine(one) === "sleep 4242");
    await expect.poll(sleeping).toBeDefined();
    const child = sleeping() ?? 0;
    stream.send({ type: "close", reason: "asked" });
    expect(await stream.frame("exit")).toMatchObject({ type: "exit" });
    await expect.poll(() => isRunning(pid) || isRunning(child)).toBe(false);
    await expect.poll(() => host.sockets("shell")).toEqual([]);
  });

  it("TERM-10 is told again to end when its shell has not heard it, before it is killed", async () => {
    const host = await terminalHost();
    const { stream } = await host.open();
    await stream.attach();
    stream.type(`exec sh -c 'trap "trap - HUP" HUP; echo de""af; while :; do sleep 0.05; done'\r`);
    await expect.poll(() => stream.text()).toMatch(/^deaf/m);
    stream.send({ type: "close", reason: "asked" });
    expect(await stream.frame("exit")).toEqual({ type: "exit", code: null, signal: "SIGHUP" });
  });
});
