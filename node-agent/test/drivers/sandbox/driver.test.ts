// The host's driver keeps the contract of sandboxes; a faulty one is found out by it, whatever its fault.

import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { scratchDirectory } from "../../../../testkit/agent/scratch.ts";
import { hostDriver } from "../../../src/drivers/sandbox/host.ts";
import { prepareStep } from "../../../src/execution/prepare-step.ts";
import { sandboxContract } from "./contract.ts";
import { faultySandbox, type SandboxFault, sandboxFaults } from "./faulty.ts";

const onHost = () => hostDriver({ root: join(scratchDirectory(), "work") });

describe("the sandbox driver of the host", () => {
  it.for(sandboxContract)("EXEC-02 $name", ({ check }) =>
    expect(check({ driver: onHost(), place: scratchDirectory(), withinMs: 60_000 })).resolves.toBeUndefined(),
  );

  it("EXEC-02 does not wait for the output of a process that has erased every trace to its script", async () => {
    const script = "(env -i setsid sleep 60 &); echo done";
    const { ended } = onHost().run({ shell: "sh", script, env: {}, onOutput: () => undefined });
    const first = await Promise.race([
      ended,
      new Promise((resolve) => setTimeout(resolve, 50_000, "waited").unref()),
    ]);
    expect(first).toEqual({ exitCode: 0 });
  });

  it("EXEC-02 recovers what was left behind, and nothing else", async () => {
    const root = scratchDirectory();
    mkdirSync(join(root, "01a1e13c-bc3d-71c5-9b58-aada3c2346d4/deep"), { recursive: true });
    mkdirSync(join(root, "of somebody else"));
    expect(await hostDriver({ root }).recover()).toBe(1);
    expect(readdirSync(root)).toEqual(["of somebody else"]);
    expect(await hostDriver({ root: join(root, "missing") }).recover()).toBe(0);
  });
});

/** Which of the contract's checks is enough to find a fault; all of them would take long, because some faults hang. */
const foundBy: Record<SandboxFault, RegExp> = {
  start_fails: /ends with its exit code/,
  never_ends: /ends with its exit code/,
  loses_exit_code: /ends with its exit code/,
  loses_output: /ends with its exit code/,
  loses_errors: /ends with its exit code/,
  inherits_environment: /environment/,
  forgets_environment: /environment/,
  ignores_kill: /a killed script/,
  claims_kill: /a killed script/,
  wrong_shell: /run by bash/,
};

describe("the contract of sandbox drivers", () => {
  it.for(sandboxFaults)("is broken by a driver that has the fault %s", async (fault) => {
    const checks = sandboxContract.filter(({ name }) => foundBy[fault].test(name));
    expect(checks).toHaveLength(1);
    for (const { check } of checks) {
      const bench = { driver: faultySandbox(fault, onHost()), place: scratchDirectory(), withinMs: 3_000 };
      await expect(check(bench)).rejects.toThrow();
    }
  });
});

describe("a shell step in a faulty sandbox", () => {
  const payload = {
    nodeId: "n",
    node: { id: "n", type: "agent.execute", config: { task: { type: "shell", script: "true" } } },
  };
  it.for<[SandboxFault, RegExp]>([
    ["start_fails", /^NODE_EXECUTION_FAILED: spawn EAGAIN$/],
    ["loses_exit_code", /./],
  ])("EXEC-05 fails, and never succeeds without an exit code: %s", async ([fault, error]) => {
    const sandbox = { configured: "host" as const, driver: faultySandbox(fault, onHost()) };
    const step = prepareStep({ kind: "agent.execute", payload }, { connectors: [], sandbox });
    const context = { signal: new AbortController().signal, onOutput: () => undefined, progress: () => undefined };
    expect(await step.run(context)).toMatchObject({ status: "failed", error: expect.stringMatching(error) });
  });
});
