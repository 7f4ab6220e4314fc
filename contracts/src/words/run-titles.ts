// What people read for the states of workflow runs and of the nodes in them.

import type { RunNodeState, RunState } from "../endpoints/runs.ts";
import type { StateTitle } from "./state-titles.ts";

export const runStateTitles: Record<RunState, StateTitle> = {
  queued: { title: "Queued", meaning: "The run starts when fewer runs of its organization are under way." },
  running: { title: "Running", meaning: "Steps run, or the run waits for something." },
  succeeded: { title: "Succeeded", meaning: "Every step has ended, and no failure was left without a path." },
  failed: { title: "Failed", meaning: "A step failed that has no path for it, or the run took too long." },
  cancelled: { title: "Cancelled", meaning: "Somebody cancelled the run, and nothing of it runs any more." },
};

export const runNodeStateTitles: Record<RunNodeState, StateTitle> = {
  pending: { title: "Pending", meaning: "What the node waits for has not happened yet." },
  started: { title: "Started", meaning: "An attempt has begun." },
  dispatched: { title: "Dispatched", meaning: "An agent is to run it; its result has not arrived yet." },
  waiting: { title: "Waiting", meaning: "It waits for a time, a person or an event." },
  retrying: { title: "Retrying", meaning: "An attempt failed, and another one follows." },
  succeeded: { title: "Succeeded", meaning: "The node has ended well." },
  failed: { title: "Failed", meaning: "The last attempt failed." },
  skipped: { title: "Skipped", meaning: "It does not run: no edge to it was taken, or the run stopped before." },
};
