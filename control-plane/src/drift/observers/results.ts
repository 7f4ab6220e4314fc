// Result outcomes: a node that refuses what the server signed for it cannot take work; one that does what it is given can.

import type { Outcome } from "@holdfast/contracts/node/protocol";
import type { CommonFailure } from "@holdfast/contracts/node/task-failures";
import type { Recorder } from "../evidence/recorder.ts";

type Reported = { nodeId: string; outcomes: readonly Outcome[]; correlationId: string };

/** Refusals that are about the server's tasks as such. An expired or replayed one, or a wrong clock, is not. */
const verification: readonly CommonFailure[] = [
  "task_signature_invalid",
  "task_key_unknown",
  "task_wrong_node",
  "task_type_unknown",
  "task_params_invalid",
];
const isAboutVerification: ReadonlySet<string> = new Set(verification);

/** A node that refuses everything is given task after task; one observation in this time is enough. */
const EVERY_MS = 5_000;
const MOST_REMEMBERED = 10_000;

export function observeResults(recorder: Recorder, now: () => number = Date.now) {
  /** Nodes that refused something, with the time of the last observation of it. */
  const refusedAt = new Map<string, number>();
  return ({ nodeId, outcomes, correlationId }: Reported): void => {
    const at = now();
    const common = { nodeId, kind: "task_verification", observer: "agent", observedAt: new Date(at) } as const;
    const refused = outcomes.find((one) => one.status === "refused" && isAboutVerification.has(one.failure.code));
    const last = refusedAt.get(nodeId);
    if (refused && "failure" in refused) {
      if (at - (last ?? Number.NEGATIVE_INFINITY) < EVERY_MS) return;
      refusedAt.delete(nodeId);
      for (const oldest of refusedAt.keys().take(refusedAt.size >= MOST_REMEMBERED ? 1 : 0))
        refusedAt.delete(oldest);
      refusedAt.set(nodeId, at);
      const detail = { code: refused.failure.code };
      recorder.observe(nodeId, [{ ...common, value: "failed", detail, correlationId }]);
      return;
    }
    if (last === undefined || !outcomes.some(({ status }) => status === "succeeded")) return;
    refusedAt.delete(nodeId);
    recorder.observe(nodeId, [{ ...common, value: "passed", correlationId }]);
  };
}
