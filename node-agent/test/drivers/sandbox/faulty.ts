// A sandbox driver with one fault, around a real one. It proves that the contract suite can fail, and lets tests of the agent
// see what a step does then. Around the host's driver, `claims_more` fails every check of isolation and limits.

import { spawn } from "node:child_process";
import { enforcedLimits } from "@holdfast/contracts/execution/limits";
import { scratchDirectory } from "../../../../testkit/agent/scratch.ts";
import { atEnd } from "../../../../testkit/lifetime/at-end.ts";
import type { SandboxDriver, SandboxEnd, SandboxOrder, SandboxRun } from "../../../src/drivers/sandbox/driver.ts";

export type SandboxFault =
  | "start_fails"
  | "start_is_silent"
  | "never_ends"
  | "loses_exit_code"
  | "loses_output"
  | "loses_errors"
  | "cuts_output"
  | "cuts_script"
  | "inherits_environment"
  | "forgets_environment"
  | "forgets_secret"
  | "shows_script"
  | "ignores_kill"
  | "claims_kill"
  | "late_kill"
  | "wrong_shell"
  | "dirty_directory"
  | "shared_directory"
  | "has_input"
  | "leaks_descriptor"
  | "leaves_processes"
  | "finds_leftovers"
  | "checks_nothing"
  | "claims_more"
  | "names_every_limit";

export function faultySandbox(fault: SandboxFault, real: SandboxDriver): SandboxDriver {
  const shared = fault === "shared_directory" ? scratchDirectory() : "";
  return {
    name: real.name,
    provides: real.provides,
    recover: async () => (await real.recover()) + (fault === "finds_leftovers" ? 1 : 0),
    check: async () => {
      const checked = await real.check();
      return fault === "checks_nothing" ? { ...checked, limits: {} as typeof checked.limits } : checked;
    },
    run(order) {
      const run = real.run(orderWith(fault, order, shared));
      // Whatever the fault, nothing outlives the test.
      atEnd(run.kill);
      return faultyRun(fault, run, order);
    },
  };
}

function faultyRun(fault: SandboxFault, run: SandboxRun, order: SandboxOrder): SandboxRun {
  let ended = endWith(fault, run, order);
  let isOver = false;
  run.ended.then(
    () => (isOver = true),
    () => undefined,
  );
  return {
    get ended() {
      return ended;
    },
    kill() {
      if (fault === "late_kill" && isOver) ended = Promise.resolve({ exitCode: null, hit: [] });
      if (fault !== "ignores_kill") run.kill();
    },
  };
}

function orderWith(fault: SandboxFault, order: SandboxOrder, shared: string): SandboxOrder {
  const { script } = order;
  switch (fault) {
    case "loses_output":
      return { ...order, onOutput: (stream, text) => stream === "stderr" && order.onOutput(stream, text) };
    case "loses_errors":
      return { ...order, onOutput: (stream, text) => stream === "stdout" && order.onOutput(stream, text) };
    case "cuts_output":
      return { ...order, onOutput: (stream, text) => order.onOutput(stream, text.slice(0, 1000)) };
    case "cuts_script":
      return { ...order, script: script.slice(0, 128 * 1024) };
    case "inherits_environment":
      return { ...order, env: { ...(process.env as Record<string, string>), ...order.env } };
    case "forgets_environment":
      return { ...order, env: {} };
    case "forgets_secret":
      return { ...order, secret: undefined };
    case "shows_script":
      return { ...order, script: `sh -c '${script}\ntrue'` };
    case "wrong_shell":
      return { ...order, shell: "sh" };
    case "dirty_directory":
      return { ...order, script: `touch of-another-run; ${script}` };
    case "shared_directory":
      return { ...order, script: `cd ${shared}; ${script}` };
    case "has_input":
      return { ...order, script: `echo typed | { ${script}\n}` };
    case "leaks_descriptor":
      return { ...order, script: `exec 9</; ${script}` };
    default:
      return order;
  }
}

function endWith(fault: SandboxFault, { ended, kill }: SandboxRun, order: SandboxOrder): Promise<SandboxEnd> {
  switch (fault) {
    case "start_fails":
      kill();
      return ended.then(() => Promise.reject(new Error("spawn EAGAIN")));
    case "start_is_silent":
      return ended.catch(() => ({ exitCode: 127, hit: [] }));
    case "never_ends":
      return new Promise(() => undefined);
    case "loses_exit_code":
      return ended.then((end) => ({ ...end, exitCode: null }));
    case "claims_kill":
      return ended.then((end) => ({ ...end, exitCode: end.exitCode ?? 0 }));
    case "names_every_limit":
      return ended.then((end) => ({ ...end, hit: enforcedLimits }));
    case "leaves_processes":
      return ended.then((end) => {
        const [, seconds = "1"] = /sleep (\d{7,})/.exec(order.script) ?? [];
        const child = spawn("sleep", [seconds], { stdio: "ignore" });
        atEnd(() => void child.kill("SIGKILL"));
        return end;
      });
    default:
      return ended;
  }
}
