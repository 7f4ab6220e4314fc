// A sandbox driver with one fault, around a real one. It proves that the contract suite can fail, and lets tests of the agent
// see what a step does then.

import { atEnd } from "../../../../testkit/lifetime/at-end.ts";
import type { SandboxDriver, SandboxEnd, SandboxOrder, SandboxRun } from "../../../src/drivers/sandbox/driver.ts";

export const sandboxFaults = [
  "start_fails",
  "never_ends",
  "loses_exit_code",
  "loses_output",
  "loses_errors",
  "inherits_environment",
  "forgets_environment",
  "ignores_kill",
  "claims_kill",
  "wrong_shell",
] as const;
export type SandboxFault = (typeof sandboxFaults)[number];

export function faultySandbox(fault: SandboxFault, real: SandboxDriver): SandboxDriver {
  return {
    name: real.name,
    recover: real.recover,
    run(order) {
      const run = real.run(orderWith(fault, order));
      // Whatever the fault, nothing outlives the test.
      atEnd(run.kill);
      return { ended: endWith(fault, run), kill: () => (fault === "ignores_kill" ? undefined : run.kill()) };
    },
  };
}

function orderWith(fault: SandboxFault, order: SandboxOrder): SandboxOrder {
  switch (fault) {
    case "loses_output":
      return { ...order, onOutput: (stream, text) => stream === "stderr" && order.onOutput(stream, text) };
    case "loses_errors":
      return { ...order, onOutput: (stream, text) => stream === "stdout" && order.onOutput(stream, text) };
    case "inherits_environment":
      return { ...order, env: { ...(process.env as Record<string, string>), ...order.env } };
    case "forgets_environment":
      return { ...order, env: {} };
    case "wrong_shell":
      return { ...order, shell: "sh" };
    default:
      return order;
  }
}

function endWith(fault: SandboxFault, { ended, kill }: SandboxRun): Promise<SandboxEnd> {
  switch (fault) {
    case "start_fails":
      kill();
      return ended.then(() => Promise.reject(new Error("spawn EAGAIN")));
    case "never_ends":
      return new Promise(() => undefined);
    case "loses_exit_code":
      return ended.then(() => ({ exitCode: null }));
    case "claims_kill":
      return ended.then(({ exitCode }) => ({ exitCode: exitCode ?? 0 }));
    default:
      return ended;
  }
}
