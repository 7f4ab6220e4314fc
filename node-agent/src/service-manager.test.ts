import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { openServiceManager } from "./service-manager.ts";

const usual = () => ({ NOTIFY_SOCKET: "/run/systemd/notify", WATCHDOG_USEC: "60000000", PATH: "/usr/bin" });

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function opened(env: Record<string, string>, supervised = false) {
  const sent: string[][] = [];
  const waiting: (() => void)[] = [];
  const send = (variables: readonly string[]) => {
    sent.push([...variables]);
    return new Promise<void>((resolve) => waiting.push(resolve));
  };
  const confirm = async () => {
    waiting.shift()?.();
    await vi.advanceTimersByTimeAsync(0);
  };
  return { manager: openServiceManager(env, { supervised, send }), sent, confirm };
}

describe("the service manager", () => {
  it("AGENT-09 is not there where nobody listens, nor for an agent that is supervised", () => {
    expect(opened({}).manager).toBeUndefined();
    expect(opened(usual(), true).manager).toBeUndefined();
  });

  it("AGENT-09 gives nothing that the agent starts the means to speak in its name", () => {
    const env = usual();
    opened(env);
    expect(env).toEqual({ PATH: "/usr/bin" });
  });

  it("AGENT-09 is told three times in each period that the agent is alive, while it is", async () => {
    const { manager, sent, confirm } = opened(usual());
    let alive = true;
    manager?.watch(() => alive);
    await vi.advanceTimersByTimeAsync(19_000);
    expect(sent).toEqual([]);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(sent).toEqual([["WATCHDOG=1"]]);
    await confirm();
    alive = false;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(sent).toHaveLength(1);
  });

  it("AGENT-09 is told of each change once, and of the newest when it was slow", async () => {
    const { manager, sent, confirm } = opened(usual());
    manager?.ready();
    manager?.status("not connected: dns_failed");
    manager?.status("connected\nas reef-1");
    manager?.status("connected as reef-1");
    await confirm();
    manager?.status("connected as reef-1");
    await confirm();
    expect(sent).toEqual([["READY=1"], ["STATUS=connected as reef-1"]]);
  });

  it("AGENT-09 is not fed by a process that its watchdog does not mean", async () => {
    const { manager, sent } = opened({ ...usual(), WATCHDOG_PID: "1" });
    manager?.watch(() => true);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(sent).toEqual([]);
  });
});
