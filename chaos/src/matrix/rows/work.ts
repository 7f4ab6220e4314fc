// Rows about tasks and results.

import { createTask } from "@holdfast/contracts/endpoints/tasks";
import { anotherBuild, ofAnOldVersion, PROBE, withoutNetworkProbe } from "../../faults/builds.ts";
import { edgeFollows } from "../../faults/edge.ts";
import { agentKilled } from "../../faults/host.ts";
import { PATIENCE_SECONDS, until } from "../../until.ts";
import type { Row } from "../row.ts";

export const workRows: Row[] = [
  {
    row: "D16",
    how: "the agent is down while a task expires, and starts again",
    at: "lab",
    async run(scene) {
      await scene.breaks(agentKilled(scene.lab.node));
      const task = await scene.gives({}, 5);
      await until(
        "the task expires",
        PATIENCE_SECONDS,
        async () => (await scene.reads(task)).status === "expired",
      );
      await scene.repairs();
      await scene.isBack();
    },
  },
  {
    row: "D17",
    how: "a proxy confirms the result of a task and loses it",
    at: "lab",
    lab: { edge: true },
    async run(scene) {
      const task = await scene.gives({ hold_ms: 5_000 });
      await until("the task runs", PATIENCE_SECONDS, async () => (await scene.reads(task)).phase === "holding");
      const page = JSON.stringify({ verdicts: [{ task_id: task.id, verdict: "accepted" }] });
      const rule = { path: "/results", do: "answer", status: 200, page } as const;
      await scene.breaks(edgeFollows(scene.lab, "the edge confirms results and loses them", rule));
    },
  },
  {
    row: "N05",
    how: "the agent is replaced by one that does not know a type of task, and is given one",
    at: "lab",
    async run(scene) {
      const { control, node } = scene.lab;
      await scene.breaks(anotherBuild(node, withoutNetworkProbe));
      await control.operator(createTask, { params: { node_id: node.id }, body: { type: PROBE, params: {} } });
    },
  },
  {
    row: "D25",
    how: "the agent is replaced by one from before the oldest version that the server supports",
    at: "lab",
    returns: true,
    run: (scene) => scene.breaks(anotherBuild(scene.lab.node, ofAnOldVersion)),
  },
  {
    row: "N06",
    how: "the edge passes everything on but results",
    at: "lab",
    lab: { edge: true },
    returns: true,
    async run(scene) {
      const rule = { path: "/results", do: "answer", status: 502, page: "<h1>Bad Gateway</h1>" } as const;
      await scene.breaks(edgeFollows(scene.lab, "the edge does not pass results on", rule));
      await scene.gives();
    },
  },
];
