// Settings of the engine.

import { integer, type SettingKind, setting } from "@holdfast/kit/settings";

const queueName: SettingKind<string> = {
  allowed: "1 to 64 letters, digits, dots, colons, hyphens and underscores",
  parse: (text) => (/^[A-Za-z0-9._:-]{1,64}$/.test(text) ? text : undefined),
};

/** Of api and worker alike. */
export const queueSetting = setting(queueName, {
  env: "HOLDFAST_WORKFLOW_QUEUE",
  aliases: ["WORKFLOW_CONTINUATION_QUEUE_NAME"],
  default: "workflow-continuations",
  help: "Name of the queue of runs. A run belongs to the queue of the process that created it, and workers continue the runs of their own queue.",
});

export const engineSettings = {
  workflowQueue: queueSetting,
  workflowPollMs: setting(integer({ min: 100, max: 60_000 }), {
    env: "HOLDFAST_WORKFLOW_POLL_MS",
    aliases: ["WORKFLOW_CONTINUATION_POLL_MS"],
    default: 2_000,
    help: "Number of milliseconds between two looks at runs that wait. Results of steps wake their runs at once; this is for what was missed.",
  }),
  workflowConcurrency: setting(integer({ min: 1, max: 1_000 }), {
    env: "HOLDFAST_WORKFLOW_CONCURRENCY",
    aliases: ["WORKFLOW_CONTINUATION_CONCURRENCY"],
    default: 10,
    help: "How many runs a worker continues at the same time. Runs that wait do not count.",
  }),
  workflowStepTimeoutMs: setting(integer({ min: 1_000, max: 600_000 }), {
    env: "HOLDFAST_WORKFLOW_STEP_TIMEOUT_MS",
    aliases: ["NODE_EXEC_TIMEOUT_MS"],
    default: 60_000,
    help: "Number of milliseconds that an attempt of a step may take, unless the workflow says otherwise.",
  }),
  workflowRunsPerOrg: setting(integer({ min: 1, max: 1_000_000 }), {
    env: "HOLDFAST_WORKFLOW_RUNS_PER_ORG",
    default: 100,
    help: "How many runs of an organization are worked on at most, by workers and agents. Others wait for their turn. Runs that wait for a time, a person or an event do not count.",
  }),
};
