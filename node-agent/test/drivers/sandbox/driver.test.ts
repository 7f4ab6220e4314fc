// The host's driver keeps the contract of sandboxes; a faulty one is found out by it, whatever its fault.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { uuidv7 } from "@holdfast/kit/uuid";
import { describe, expect, it } from "vitest";
import { scratchDirectory } from "../../../../testkit/agent/scratch.ts";
import { hostDriver } from "../../../src/drivers/sandbox/host.ts";
import { prepareStep } from "../../../src/execution/prepare-step.ts";
import { createRedaction } from "../../../src/execution/redaction/redactor.ts";
import { sandboxWith } from "../../support/host-backend.ts";
import { type Bench, roomy } from "./bench.ts";
import { contractOf, sandboxContract } from "./contract.ts";
import { faultySandbox, type SandboxFault } from "./faulty.ts";

const sending = fileURLToPath(new URL("../../support/send-and-die.ts", import.meta.url));
const onHost = () => hostDriver({ root: join(scratchDirectory(), "work") });

function hostBench(withinMs: number): Bench {
  const root = join(scratchDirectory(), "work");
  return {
    ...{ driver: hostDriver({ root }), withinMs },
    leftovers: () => (existsSync(root) ? readdirSync(root) : []),
  };
}

describe("the sandbox driver of the host", () => {
  it.for(contractOf({ isolation: false, limits: [] }))("EXEC-02 $name", ({ check }) =>
    expect(check(hostBench(60_000))).resolves.toBeUndefined(),
  );

  it("EXEC-02 does not wait for the output of a process that has erased every trace to its script", async () => {
    const script = "(env -i setsid sleep 60 &); echo done";
    const { ended } = onHost().run({
      ...{ id: uuidv7(), shell: "sh", script, env: {}, network: true, image: "", limits: roomy },
      onOutput: () => undefined,
    });
    const first = await Promise.race([
      ended,
      new Promise((resolve) => setTimeout(resolve, 50_000, "waited").unref()),
    ]);
    expect(first).toEqual({ exitCode: 0, hit: [] });
  });

  it("EXEC-02 does not run a script whose end the agent did not live to send", async () => {
    const root = scratchDirectory();
    const order = { root, id: uuidv7(), script: `echo ran > ${join(root, "ran")}` };
    const agent = spawn(process.execPath, [sending, JSON.stringify(order)], { stdio: "inherit" });
    const [, signal] = await once(agent, "exit");
    expect(signal).toBe("SIGKILL");
    const alive = () => processesWith(`HOLDFAST_EXECUTION_RUN=${order.id}`);
    await expect.poll(alive, { timeout: 60_000 }).toEqual([]);
    expect(readdirSync(root)).toEqual([order.id]);
    expect(await hostDriver({ root }).recover()).toBe(1);
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

/** Every check of the contract, by its name, with faults that it finds. */
const finds: Record<string, SandboxFault[]> = {
  "ends with its exit code": ["start_fails", "never_ends", "loses_exit_code", "loses_output", "loses_errors"],
  "dies by a signal": ["loses_exit_code"],
  "longer than an argument": ["cuts_script"],
  "run by bash": ["wrong_shell"],
  "many pieces": ["cuts_output"],
  "agent's environment": ["inherits_environment", "forgets_environment"],
  "the secret reaches": ["forgets_secret"],
  "no arguments of any process": ["shows_script"],
  "a directory of its own": ["dirty_directory"],
  "reads its input": ["has_input"],
  "a killed script ends": ["ignores_kill", "claims_kill"],
  "leaves running": ["leaves_processes"],
  "killed before it has begun": ["ignores_kill"],
  "a kill after the end": ["late_kill"],
  "cannot be started": ["start_is_silent"],
  "at the same time": ["shared_directory"],
  "nothing is left to recover": ["finds_leftovers"],
  "the check says": ["checks_nothing"],
  "the root is read-only": ["claims_more"],
  "neither devices": ["claims_more"],
  "no privileges": ["claims_more"],
  "without network": ["claims_more"],
  "no process of the host": ["claims_more"],
  "a file in memory": ["claims_more"],
  "no descriptor": ["leaks_descriptor"],
  "exceeds its memory": ["claims_more"],
  "no more processes": ["claims_more"],
  "fills /work": ["claims_more"],
  "removes what filled": ["claims_more"],
  "needs more processor": ["claims_more"],
  "within its limits": ["names_every_limit"],
};

describe("the contract of sandbox drivers", () => {
  it.for(sandboxContract)("finds a faulty driver: $name", async ({ name, check }) => {
    const [faults, ...others] = Object.keys(finds).flatMap((part) => (name.includes(part) ? [finds[part]] : []));
    expect(others).toEqual([]);
    for (const fault of faults ?? expect.unreachable("a check that finds no fault")) {
      const bench = hostBench(3_000);
      const driver = faultySandbox(fault, bench.driver);
      await expect(check({ ...bench, driver }), fault).rejects.toThrow();
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
    const sandbox = sandboxWith(faultySandbox(fault, onHost()));
    const step = prepareStep(
      { requestId: "r:n:1", kind: "agent.execute", payload },
      { connectors: { enabled: [], networks: [] }, sandbox },
    );
    const context = {
      ...{ signal: new AbortController().signal, onOutput: () => undefined, progress: () => undefined },
      redaction: createRedaction([]),
    };
    expect(await step.run(context)).toMatchObject({ status: "failed", error: expect.stringMatching(error) });
  });
});

function processesWith(variable: string): string[] {
  return readdirSync("/proc").filter((name) => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/environ`, "utf8").split("\0").includes(variable);
    } catch {
      return false;
    }
  });
}
