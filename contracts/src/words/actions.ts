// The next action of a cause, for one node: page and command line offer exactly this one.

import type { Cause, Explanation } from "../endpoints/drift.ts";
import { type Action, actions } from "../reasons/actions.ts";

export type OfferedAction = Action & {
  /** Can be pasted as it stands; null: there is none, or what it needs is not known. */
  command: string | null;
  /** The task to replay. */
  taskId: string | null;
  /** Of waiting: when it should be over, in milliseconds; null: there is no limit, or nothing to wait for. */
  until: number | null;
};

export function offeredAction(
  cause: Pick<Cause, "next_action" | "evidence" | "since" | "budget">,
  { evidence, node_name }: Pick<Explanation, "evidence" | "node_name">,
): OfferedAction {
  const action = actions[cause.next_action ?? "none"];
  const taskId = taskIn(evidence.filter(({ id }) => cause.evidence.includes(id)));
  return { ...action, command: commandOf(action, node_name, taskId), taskId, until: untilOf(cause) };
}

function taskIn(evidence: Explanation["evidence"]): string | null {
  const ids = evidence.map(({ detail }) => detail?.["task_id"]).filter((id) => typeof id === "string");
  return ids[0] ?? null;
}

function commandOf({ way }: Action, node: string, taskId: string | null): string | null {
  if (way.by !== "button") return null;
  if (way.button === "replay_task" && taskId === null) return null;
  return way.command.replace("<id>", () => node).replace("<task>", () => taskId ?? "");
}

function untilOf({ next_action, since, budget }: Pick<Cause, "next_action" | "since" | "budget">): number | null {
  if (next_action !== "wait" || typeof budget.repair !== "number") return null;
  return Date.parse(since) + budget.repair * 1000;
}
