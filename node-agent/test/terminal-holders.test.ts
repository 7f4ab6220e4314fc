// The processes that hold shells: one is kept ready, and none is left behind.

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import type { Launch } from "../src/drivers/pty/driver.ts";
import { commandOf } from "../src/drivers/pty/launch.ts";
import { ptyDriver } from "../src/drivers/pty/pty-driver.ts";
import { directoryOf } from "../src/terminals/directory.ts";
import { holderOf, isRunning, terminalHost } from "./support/terminals.ts";

describe("holders", () => {
  it("TERM-03 one is kept ready after the first terminal, and taken for the next", async () => {
    const host = await terminalHost();
    expect(host.sockets()).toEqual([]);
    await host.open();
    await expect.poll(() => host.sockets("spare")).toHaveLength(1);
    const [spare] = host.sockets("spare");
    await host.open();
    expect(host.sockets("spare")).not.toContain(spare);
    await expect.poll(() => host.sockets("spare")).toHaveLength(1);
    host.terminals.stop();
    await expect.poll(() => host.sockets("spare")).toEqual([]);
    await host.restart();
  });

  it("TERM-03 one that is still starting when the agent stops goes as well", async () => {
    const waiting: Parameters<Launch>[0][] = [];
    let launched = 0;
    const launch: Launch = (holder) => {
      launched += 1;
      if (launched === 1) return ptyDriver().launch(holder);
      waiting.push(holder);
      return { onFailure() {} };
    };
    const host = await terminalHost({ driver: { ...ptyDriver(), launch } });
    await host.open();
    await expect.poll(() => waiting.length).toBe(1);
    host.terminals.stop();
    const [{ directory, ...spare } = { directory: "", id: "", orphanSeconds: 0 }] = waiting;
    const [file = "", ...args] = commandOf(spare);
    const holder = spawn(file, args, { cwd: directory, stdio: "ignore" });
    expect(await once(holder, "exit")).toEqual([0, null]);
    await expect.poll(() => host.sockets("spare")).toEqual([]);
    await host.restart({ driver: ptyDriver() });
  });

  it("TERM-03 the one that is kept ready goes some time after the last terminal", async () => {
    const host = await terminalHost({ keepSpareMs: 1_000 });
    const { stream } = await host.open();
    await expect.poll(() => host.sockets("spare")).toHaveLength(1);
    stream.send({ type: "close", reason: "asked" });
    await expect.poll(() => host.sockets().filter((name) => name !== "gateway.json")).toEqual([]);
  });

  it("TERM-03 a spare that was left by a killed agent is used, and one without a process cleared away", async () => {
    const host = await terminalHost();
    const directory = directoryOf(host.stateDir);
    const [file = "", ...args] = commandOf({ id: "11111111-2222-4333-8444-555555555555", orphanSeconds: 60 });
    const left = spawn(file, args, { cwd: directory, stdio: "ignore" });
    await expect.poll(() => host.sockets("spare")).toHaveLength(1);
    await host.restart();
    const { sessionId } = await host.open();
    expect(holderOf(host, sessionId)).toBe(left.pid);
    left.kill("SIGKILL");
    await once(left, "exit");
    await expect.poll(() => host.sockets("shell")).toEqual([]);
  });

  it("TERM-03 nobody but the agent's user can reach their sockets", async () => {
    const host = await terminalHost();
    await host.open();
    const directory = directoryOf(host.stateDir);
    const modes = execFileSync("stat", [
      "-c",
      "%a %U",
      directory,
      ...host.sockets().map((name) => `${directory}/${name}`),
    ]);
    expect(
      modes
        .toString()
        .trim()
        .split("\n")
        .every((line) => /^[76]00 /.test(line)),
    ).toBe(true);
  });

  it("TERM-03 200 terminals, opened and dropped, leave nothing behind", { timeout: 300_000 }, async () => {
    const host = await terminalHost();
    const pids: number[] = [];
    const body = JSON.stringify({ code: "terminal_session_unknown", message: "It has ended." });
    for (let round = 0; round < 20; round += 1) {
      host.gateway.refuse = () => undefined;
      const opened = await Promise.all(Array.from({ length: 10 }, () => host.open()));
      pids.push(...opened.flatMap(({ pid, sessionId }) => [pid, holderOf(host, sessionId)]));
      host.gateway.refuse = () => ({ status: 404, body });
      for (const { stream } of opened) stream.drop();
      await expect.poll(() => host.terminals.count()).toBe(0);
    }
    await expect.poll(() => pids.filter(isRunning)).toEqual([]);
    host.terminals.stop();
    await expect.poll(() => host.sockets().filter((name) => name !== "gateway.json")).toEqual([]);
    await host.restart();
  });
});
