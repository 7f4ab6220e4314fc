// The real PTY driver keeps its contract; a faulty one is found out by it, whatever its fault.

import { describe, expect, it } from "vitest";
import { scratchDirectory } from "../../../../testkit/agent/scratch.ts";
import { ptyDriver } from "../../../src/drivers/pty/pty-driver.ts";
import { ptyContract } from "./contract.ts";
import { faultyPtyDriver, type PtyFault, ptyFaults } from "./faulty.ts";

describe("the PTY driver", () => {
  it.for(ptyContract)("$name", ({ check }) =>
    expect(
      check({ driver: ptyDriver(), directory: scratchDirectory(), withinMs: 20_000 }),
    ).resolves.toBeUndefined(),
  );
});

/** Which of the contract's checks are enough to find a fault; all of them would take long, because some faults hang. */
const foundBy: Record<PtyFault, RegExp> = {
  start_fails: /becomes ready/,
  start_hangs: /becomes ready/,
  connect_hangs: /becomes ready/,
  dies_before_connect: /becomes ready/,
  become_fails: /reads its input/,
  become_dies: /reads its input/,
  become_hangs: /reads its input/,
  loses_connection: /reads its input/,
  dies_early: /reads its input/,
  loses_output: /reads its input/,
  loses_input: /reads its input/,
  ignores_orders: /that is closed ends/,
  loses_notes: /with its notes/,
};

describe("the contract of PTY drivers", () => {
  it.for(ptyFaults)("is broken by a driver that has the fault %s", async (fault) => {
    const checks = ptyContract.filter(({ name }) => foundBy[fault].test(name));
    expect(checks).toHaveLength(1);
    for (const { check } of checks) {
      const bench = { driver: faultyPtyDriver(fault), directory: scratchDirectory(), withinMs: 2_000 };
      await expect(check(bench)).rejects.toThrow();
    }
  });
});
