// How a failed run continues where it failed: the nodes whose failure nothing handled get another attempt, and what was skipped because of
// them is decided again. What has succeeded stays. The document may be a later version, in which the step was corrected.

import type { WorkflowDocument } from "../document/schema.ts";
import { unhandledNodes } from "./decide.ts";
import type { RunEvent } from "./events.ts";
import type { RunState } from "./state.ts";

export type Retried = Extract<RunEvent, { type: "run_retried" }>;

/** A text says why it cannot. */
export function retryOf(
  state: RunState,
  { before, after }: { before: WorkflowDocument; after: WorkflowDocument },
  { version, by }: { version: number; by: string },
): Retried | string {
  if (state.status !== "failed") return `The run is ${state.status}.`;
  const isKept = (id: string) => Object.hasOwn(after.nodes, id);
  const removed = Object.keys(state.nodes).filter((id) => !isKept(id));
  const underWay = removed.find((id) => /^(started|dispatched)$/.test(state.nodes[id]?.status ?? ""));
  if (underWay !== undefined) return `${underWay} is under way, and version ${version} does not have it.`;
  const again = unhandledNodes(before, state).filter(isKept);
  const skipped = Object.keys(after.nodes).filter((id) => (state.nodes[id]?.status ?? "skipped") === "skipped");
  return { type: "run_retried", version, by, again, reset: skipped, removed };
}
