// The task path as nodes use it, on the node-facing listener.

import type { AnswerOf } from "@holdfast/contracts/endpoint";
import { reportProgress, reportResult, reportResults, waitForTasks } from "@holdfast/contracts/node/endpoints";
import type { TaskResultReport, Verdict } from "@holdfast/contracts/node/protocol";
import { type NodeApi, nodeRoute } from "../node-api/route.ts";
import type { TaskEngine } from "./engine.ts";

export function nodeTaskRoutes(api: NodeApi, tasks: TaskEngine): void {
  nodeRoute(api, waitForTasks, async ({ query, node, instanceId, signal }) => {
    const { room, holding } = query;
    const waitMs = query.wait * 1000;
    const answer = await tasks.wait(node.id, { instanceId, room, holding, waitMs, signal: signal() });
    const standing = await api.directory.standing(node.id);
    return {
      node: { status: standing?.status ?? "retired", reason: standing?.reason ?? null },
      tasks: answer.tasks,
      cancel: answer.cancel,
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

  const store = async (nodeId: string, reports: readonly TaskResultReport[], correlationId: string) => {
    const verdicts = await tasks.results(nodeId, reports);
    const outcomes = reports
      .filter((_, index) => verdicts[index]?.verdict === "accepted")
      .map(({ outcome }) => outcome);
    for (const one of api.observers) one.results?.({ nodeId, outcomes, correlationId });
    return verdicts;
  };

  nodeRoute(api, reportResult, async ({ params, body, node, correlationId }) => {
    const [judged] = await store(node.id, [{ task_id: params.task_id, ...body }], correlationId);
    const verdict: Verdict = judged?.verdict ?? "unknown";
    return { verdict };
  });

  nodeRoute(api, reportResults, async ({ body, node, correlationId }) => ({
    verdicts: await store(node.id, body.results, correlationId),
  }));
}
