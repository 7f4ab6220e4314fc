// The task path as nodes use it, on the node-facing listener.

import { setTimeout as sleep } from "node:timers/promises";
import type { AnswerOf } from "@holdfast/contracts/endpoint";
import { reportProgress, reportResult, reportResults, waitForTasks } from "@holdfast/contracts/node/endpoints";
import type { TaskResultReport, Verdict, WaitAnswer } from "@holdfast/contracts/node/protocol";
import { heartbeatWanted, type NodeApi, type NodeCall, nodeRoute } from "../node-api/route.ts";
import type { TaskEngine } from "./engine.ts";

/** The engine never sees it: it takes no task, renews no lease, replaces no poll, and leaves no evidence. */
async function probed(
  api: NodeApi,
  nodeId: string,
  { waitMs, ended }: { waitMs: number; ended: AbortSignal },
): Promise<WaitAnswer> {
  await sleep(waitMs, undefined, { signal: ended }).catch(() => undefined);
  const standing = await api.directory.standing(nodeId);
  const node = { status: standing?.status ?? "retired", reason: standing?.reason ?? null } as const;
  return { node, tasks: [], cancel: [], probe: true };
}

type Reported = Pick<NodeCall<unknown>, "node" | "instanceId" | "correlationId">;

export function nodeTaskRoutes(api: NodeApi, tasks: TaskEngine): void {
  nodeRoute(api, waitForTasks, async ({ query, node, instanceId, signal }): Promise<WaitAnswer> => {
    const { room, holding } = query;
    const waitMs = query.wait * 1000;
    const ended = signal();
    if (query.probe) return probed(api, node.id, { waitMs, ended });
    const answer = await tasks.wait(node.id, { instanceId, room, holding, waitMs, signal: ended });
    const standing = await api.directory.standing(node.id);
    return {
      node: { status: standing?.status ?? "retired", reason: standing?.reason ?? null },
      tasks: answer.tasks,
      cancel: answer.cancel,
      ...(ended.reason === heartbeatWanted ? { beat: true } : {}),
    };
  });

  api.streamUses.push((stream) => {
    const { id: nodeId, instanceId } = stream.node;
    const waiting = tasks.attach(nodeId, {
      instanceId,
      send: (offer, response) => stream.send({ offer, ...response }),
      isHeard: () => stream.isHeard(),
      onSuperseded: () => stream.supersede(),
    });
    return {
      capacity: waiting.capacity,
      answered(call, answer) {
        if (call !== reportResults.name) return;
        const { verdicts } = answer as AnswerOf<typeof reportResults>;
        waiting.settled(verdicts.map(({ task_id }) => task_id));
      },
      heard: waiting.heard,
      closed: waiting.detach,
    };
  });

  nodeRoute(api, reportProgress, async ({ params, body, node }) => tasks.progress(node.id, params.task_id, body));

  const store = async (call: Reported, reports: readonly TaskResultReport[]) => {
    const { node, instanceId, correlationId } = call;
    const verdicts = await tasks.results(node.id, reports, { instanceId });
    const outcomes = reports
      .filter((_, index) => verdicts[index]?.verdict === "accepted")
      .map(({ outcome }) => outcome);
    for (const one of api.observers) one.results?.({ nodeId: node.id, outcomes, correlationId });
    return verdicts;
  };

  nodeRoute(api, reportResult, async (call) => {
    const [judged] = await store(call, [{ task_id: call.params.task_id, ...call.body }]);
    const verdict: Verdict = judged?.verdict ?? "unknown";
    return { verdict };
  });

  nodeRoute(api, reportResults, async (call) => ({ verdicts: await store(call, call.body.results) }));
}
