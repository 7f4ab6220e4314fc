// Rows about tasks and results.

import { rmSync } from "node:fs";
import { join } from "node:path";
import { createTask } from "@holdfast/contracts/endpoints/tasks";
import { anotherBuild, ofAnOldVersion, PROBE, withoutNetworkProbe } from "../../faults/builds.ts";
import { edgeFollows } from "../../faults/edge.ts";
import type { Fault } from "../../faults/fault.ts";
import { agentKilled } from "../../faults/host.ts";
import type { LabNode } from "../../lab/node.ts";
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
      await scene.mends();
      await scene.isBack();
    },
  },
  {
    row: "D17",
    how: "the agent is killed -9 during a task and starts again without its journal, so it has no result to send",
    at: "lab",
    async run(scene) {
      const task = await scene.gives({ hold_ms: 60_000 });
      await until("the task runs", PATIENCE_SECONDS, async () => (await scene.reads(task)).phase === "holding");
      await scene.breaks(journalLost(scene.lab.node));
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

function journalLost(node: LabNode): Fault {
  return {
    what: "the agent has lost its journal",
    async inflict() {
      await node.agent().stop("SIGKILL");
      for (const name of ["journal.a", "journal.b"]) rmSync(join(node.stateDir, name), { force: true });
      node.startAgent();
    },
    mend: async () => undefined,
  };
}
