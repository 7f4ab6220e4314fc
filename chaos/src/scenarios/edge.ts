// What stands between nodes and api in an installation.

import { edgeFollows } from "../faults/edge.ts";
import type { Scenario } from "../scenario.ts";

export const rateLimited: Scenario = {
  name: "edge-429",
  title: "the edge answers every request with 429",
  expect: { hop: "edge", signal: "edge_rate_limited", seconds: 20 },
  lab: { edge: true },
  async run(story) {
    const page = "<html><h1>Too many requests</h1><p>Slow down.</p></html>";
    const rule = { path: "", do: "answer", status: 429, page } as const;
    await story.breaks(edgeFollows(story.lab, "the edge answers with 429", rule));
    const task = await story.gives();
    await story.hostSees("edge_rate_limited");
    await story.dashboardSees("heartbeat_stale");
    await story.mends();
    await story.succeeds(task);
    await story.allIsWell();
  },
};

export const resultRefused: Scenario = {
  name: "result-refused",
  title: "the edge lets everything pass but results",
  expect: { hop: "task_result", signal: "node_task_result_post_failed", seconds: 20 },
  lab: { edge: true },
  async run(story) {
    const rule = { path: "/results", do: "answer", status: 502, page: "<h1>Bad Gateway</h1>" } as const;
    await story.breaks(edgeFollows(story.lab, "the edge does not pass results on", rule));
    const task = await story.gives({ params: { echo: "kept" } });
    // The node is online meanwhile, and tells it itself.
    await story.dashboardSees("task_result_failed");
    await story.hostSees("task_result_failed");
    const { record } = await story.historyHas("task_result_failed");
    if (record.correlation_id !== task.correlation_id) throw new Error("the record is not of that task");
    await story.mends();
    await story.succeeds(task);
    await story.allIsWell();
  },
};
