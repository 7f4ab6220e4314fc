// The agent's terminals over a PTY driver with a fault: what cannot be opened says so and leaves nothing behind, and what
// breaks later ends for its user with a reason.

import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ptyDriver } from "../src/drivers/pty/pty-driver.ts";
import type { TerminalsOptions } from "../src/terminals/terminals.ts";
import { faultyPtyDriver, type PtyFault } from "./drivers/pty/faulty.ts";
import { ask, type TerminalHost, terminalHost } from "./support/terminals.ts";

/** Holders that serve this directory: their working directory is gone to /, so they are found by their sockets' ids. */
function holdersOf(host: TerminalHost, ids: readonly string[]): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, "utf8");
        return ids.some((id) => command.includes(id)) || command.includes(host.stateDir);
      } catch {
        return false;
      }
    });
}

/** Over a driver that notes which holders it was asked to start. */
async function hostWith(fault: PtyFault, more: Partial<TerminalsOptions> = {}) {
  const ids: string[] = [];
  const faulty = faultyPtyDriver(fault);
  const launch: typeof faulty.launch = (holder) => {
    ids.push(holder.id);
    return faulty.launch(holder);
  };
  return { host: await terminalHost({ driver: { ...faulty, launch }, ...more }), ids };
}

/** Without the spare that is started afterwards. */
async function leftBehind(host: TerminalHost, ids: readonly string[]) {
  return { shells: host.sockets("shell"), holders: holdersOf(host, ids), open: host.terminals.count() };
}
const nothing = { shells: [], holders: [], open: 0 };

describe("a terminal on a host whose PTY driver is faulty", () => {
  it.for([
    ["start_fails", "spawn EAGAIN"],
    ["dies_before_connect", "ended"],
    ["connect_hangs", "does not answer"],
    ["become_fails", "no PTY"],
    ["become_dies", "ended"],
    ["become_hangs", "in time"],
  ] as const)("is refused with terminal_pty_failed: %s", async ([fault, why]) => {
    const { host, ids } = await hostWith(fault);
    const failure = await host
      .open({}, { withinMs: fault === "become_hangs" ? 5_000 : 40_000 })
      .catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "terminal_pty_failed", message: expect.stringContaining(why) });
    expect(host.failures).toEqual([expect.objectContaining({ code: "terminal_pty_failed" })]);
    host.terminals.stop();
    await expect.poll(() => leftBehind(host, ids)).toEqual(nothing);
  });

  it("is refused in time when its holder never becomes ready", async () => {
    const { host } = await hostWith("start_hangs");
    const failure = await host.open({}, { withinMs: 5_000 }).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "terminal_pty_failed", message: "The shell did not start in time." });
    expect(host.terminals.count()).toBe(0);
  });

  it.for(["dies_early", "loses_connection"] as const)(
    "that was open ends with a reason for its user: %s",
    async (fault) => {
      const { host, ids } = await hostWith(fault);
      const { stream } = await host.open();
      expect(await stream.frame("error")).toMatchObject({ code: "terminal_pty_failed" });
      await expect.poll(stream.closed).toBe(true);
      await expect.poll(() => host.terminals.count()).toBe(0);
      expect(host.failures).toContainEqual(expect.objectContaining({ code: "terminal_pty_failed" }));
      host.terminals.stop();
      await expect.poll(() => leftBehind(host, ids)).toEqual(nothing);
    },
  );

  it("is ended by force when its holder ignores orders", async () => {
    const { host, ids } = await hostWith("ignores_orders", { obeyMs: 200 });
    const { stream } = await host.open();
    stream.send({ type: "close", reason: "closed" });
    await expect.poll(() => host.terminals.count()).toBe(0);
    host.terminals.stop();
    await expect.poll(() => leftBehind(host, ids)).toEqual(nothing);
  });

  it("opens again as soon as the fault is gone", async () => {
    const { host } = await hostWith("become_fails");
    await expect(host.open()).rejects.toMatchObject({ code: "terminal_pty_failed" });
    await host.restart({ driver: ptyDriver() });
    const { stream } = await host.open();
    await stream.attach();
    expect(await ask(stream, "echo works")).toBe("works");
  });
});
