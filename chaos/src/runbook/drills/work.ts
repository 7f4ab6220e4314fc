// The work of the node: a task that it has claimed, and whose result does not reach the API.

import { createTask, getTask, listTasks, type Task } from "@holdfast/contracts/endpoints/tasks";
import { edgeFollows } from "../../faults/edge.ts";
import type { Fault } from "../../faults/fault.ts";
import { egressRejected } from "../../faults/network.ts";
import type { Lab } from "../../lab/lab.ts";
import { PATIENCE_SECONDS, until } from "../../until.ts";
import type { Drill, DrillScene } from "../drill.ts";
import { agentLog, cell } from "./cells.ts";
import { edgeLab } from "./labs.ts";
import { isSilent, unreachable } from "./link.ts";

/** Long enough to be cut off before it ends, on a busy machine too. */
const HOLD_MS = 6_000;

/** `prepare` lets the node claim a task, which is under way when the fault begins. */
const afterClaim = (lab: Lab, fault: Fault): Fault & { prepare(): Promise<void> } => ({
  ...fault,
  async prepare() {
    const body = { type: "node.noop", params: { echo: KEPT, hold_ms: HOLD_MS } };
    const { id } = await lab.control.operator(createTask, { params: { node_id: lab.node.id }, body });
    await until("the task is under way", PATIENCE_SECONDS, async () => {
      const { phase } = await lab.control.operator(getTask, { params: { task_id: id } });
      return phase === "holding";
    });
  },
});
const KEPT = "kept until it can be delivered";

/** The operation that was under way, or the user's own. */
async function operation({ lab, user }: DrillScene): Promise<Task> {
  const { items } = await lab.control.operator(listTasks, { query: { node_id: lab.node.id, type: "node.noop" } });
  const found = items.find(
    ({ params, correlation_id }) =>
      (params as { echo?: string }).echo === KEPT || correlation_id === user.correlation_id,
  );
  if (!found) throw new Error("the task is not listed");
  return found;
}

/** The agent's log has the failed delivery, under the id of the request for the task. */
const failedPost = async (scene: DrillScene) => {
  const { correlation_id } = await operation(scene);
  const line = scene.lab.node
    .lines()
    .find((one) => one.reason === "task_result_failed" && one.correlation_id === correlation_id);
  return { correlation_id, line };
};

const evidence = {
  "M5: Latest operation ID/status": cell(/^node[.]noop [0-9a-f-]{36} dispatched$/, async (scene) => {
    const { type, id, status } = await operation(scene);
    return `${type} ${id} ${status}`;
  }),
  "M5: node-agent result post error": agentLog(/^task_result_failed$/, /task_result_failed/),
  "M5: correlation ID": cell(/^([0-9a-f-]{36}) is in the agent's log as \1$/, async (scene) => {
    const { correlation_id, line } = await failedPost(scene);
    return `${correlation_id} is in the agent's log as ${line?.correlation_id}`;
  }),
};
const delivered = {
  "M5: queued result posts complete or retry cleanly": cell(/^completed by delivery 1$/, async (scene) => {
    const { status, generation } = await operation(scene);
    return `${status} by delivery ${generation}`;
  }),
};

export const resultEgressBlocked: Drill = {
  ...{ labName: "node", lab: { gateway: true }, user: "terminal" },
  name: "result-egress-blocked",
  title: "the node has claimed a task, and a firewall refuses what it sends to the API before the task ends",
  rows: [{ row: "M5", variant: "API egress" }, { row: "L6" }],
  fault: (lab) => afterClaim(lab, egressRejected(lab)),
  async takesEffect(scene) {
    await isSilent("api_unreachable")(scene);
    await until("the result could not be delivered", PATIENCE_SECONDS, async () => (await failedPost(scene)).line);
  },
  // The specification's N02 masks `node_task_result_post_failed`: nothing that the node sends gets through.
  expect: unreachable,
  before: evidence,
  after: delivered,
};

export const resultPathBlocked: Drill = {
  ...edgeLab,
  name: "result-path-blocked",
  title: "the node claims a task, and the edge does not pass its result on",
  rows: [{ row: "M5", variant: "result-post path" }, { row: "L6" }],
  user: "task",
  // The user's own task is the one that is claimed.
  fault(lab) {
    const rule = { path: "/results", do: "answer", status: 502, page: "<h1>Bad Gateway</h1>" } as const;
    return edgeFollows(lab, "the edge does not pass results on", rule);
  },
  expect: {
    user: { code: "task_result_failed", hop: "latest_operation", next_step: /holdfast task show [0-9a-f-]{36}$/ },
    page: { hop: "latest_operation", signal: "node_task_result_post_failed" },
    preflight: {
      ...{ failed_hop: "node_task_round_trip", symptom_hop: null },
      ...{ signal: "node_task_result_post_failed", owner: "api" },
    },
  },
  before: evidence,
  after: delivered,
};
