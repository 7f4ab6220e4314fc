// What stands between nodes and api in an installation.

import { edgeFollows } from "../faults/edge.ts";
import type { Scenario } from "../scenario.ts";
import { cutOff, offline } from "./cut-off.ts";

export const rateLimited: Scenario = {
  name: "edge-429",
  title: "the edge answers every request with 429",
  // The edge passes on no upgrades: the agent polls.
  expect: offline("edge_rate_limited", 25).polling,
  lab: { edge: true },
  async run(story) {
    const page = "<html><h1>Too many requests</h1><p>Slow down.</p></html>";
    const rule = { path: "", do: "answer", status: 429, page } as const;
    await cutOff(story, edgeFollows(story.lab, "the edge returns 429", rule), "edge_rate_limited");
  },
};

export const resultRefused: Scenario = {
  name: "result-refused",
  title: "the edge lets everything pass but results",
  expect: {
    rows: ["N06"],
    sightings: [
      { by: "dashboard", code: "task_result_failed", within: 25 },
      { by: "host", code: "task_result_failed", within: 25 },
    ],
  },
  lab: { edge: true },
  async run(story) {
    const rule = { path: "/results", do: "answer", status: 502, page: "<h1>Bad Gateway</h1>" } as const;
    await story.breaks(edgeFollows(story.lab, "the edge does not pass results on", rule));
    const task = await story.gives({ params: { echo: "kept" } });
    // The node is online meanwhile and reports it itself.
    await Promise.all([story.dashboardSees("task_result_failed"), story.hostSees("task_result_failed")]);
    await story.repairs();
    await story.succeeds(task);
    await story.recovers();
  },
};
