// The chain of a terminal, as the page draws it.

import type { TerminalSession } from "@holdfast/contracts/endpoints/terminals";
import { chainSteps, type ReadinessStep, readinessSteps } from "@holdfast/contracts/terminal/frames";
import type { Chain } from "@holdfast/terminal-client/states";

/** In milliseconds since it was requested. */
export function chainOf({ chain, created_at }: Pick<TerminalSession, "chain" | "created_at">): Chain {
  const from = Date.parse(created_at);
  return Object.fromEntries(
    chainSteps.flatMap((step) => {
      const { at } = chain[step] ?? {};
      return at === undefined ? [] : [[step, Math.max(0, Date.parse(at) - from)] as const];
    }),
  );
}

/** The first step that was not reached; but one before the shell may be missing because of the shell. */
export function stoppedAt(chain: Chain, hop: string): ReadinessStep | undefined {
  if (hop === "workload_terminal_startup_failure" && chain.pty_ready === undefined) return "pty_ready";
  return readinessSteps.find((step) => chain[step] === undefined);
}
