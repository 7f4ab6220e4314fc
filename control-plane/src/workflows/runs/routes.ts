// Runs over HTTP. The api stores requests; the engine in the workers carries them out.

import {
  cancelRun,
  getRun,
  listRunEvents,
  listRuns,
  MOST_RUN_INPUT_BYTES,
  resumeRun,
  retryRun,
  sendRunEvent,
  startRun,
} from "@holdfast/contracts/endpoints/runs";
import { ApiError } from "@holdfast/contracts/errors";
import { uuidv7 } from "@holdfast/kit/uuid";
import { readWorkflow } from "@holdfast/workflows/document/read";
import type { WorkflowDocument } from "@holdfast/workflows/document/schema";
import { retryOf } from "@holdfast/workflows/run/resume";
import { applyEvent } from "@holdfast/workflows/run/state";
import type { ApiContext } from "../../api/context.ts";
import { pageStart, toPage } from "../../api/page.ts";
import { orgRoute } from "../../api/route.ts";
import { auditActor } from "../../audit/record.ts";
import type { Tx } from "../../database/connect.ts";
import { type Actor, nameOf } from "../../people/actor.ts";
import { selectVersion, selectWorkflow, type WorkflowRow } from "../queries.ts";
import { serviceUserOf } from "../service-user.ts";
import {
  insertSignal,
  type RunRow,
  requestCancel,
  selectEvents,
  selectPlacements,
  selectRun,
  selectRuns,
  toNodes,
  toRun,
} from "./queries.ts";
import { insertRun } from "./transitions/create.ts";
import { retryRun as storeRetry } from "./transitions/retry.ts";

export function runRoutes(api: ApiContext): void {
  const changed = (id: string) => () => api.signals.publish("workflow_run", [id]);

  orgRoute(api, startRun, async ({ tx, org, actor, params, body, touched, afterCommit, correlationId }) => {
    const workflow = await selectWorkflow(tx, { id: params.workflow_id });
    if (!workflow) throw new ApiError("not_found");
    const version = body.version ?? workflow.published_version;
    if (version === null || !(await selectVersion(tx, workflow.id, version)))
      throw new ApiError("workflow_not_published");
    const id = await storeRun(api, tx, { workflow, version, input: body.input, org, actor, correlationId });
    touched({ type: "run", id, name: workflow.name }, { workflow_id: workflow.id, version });
    afterCommit(changed(id));
    return toRun(await requireRun(tx, id));
  });

  orgRoute(api, listRuns, async ({ tx, query }) => {
    const { limit, cursor, workflow_id: workflowId, status } = query;
    const rows = await selectRuns(tx, {
      ...{ before: pageStart(listRuns, cursor), limit },
      ...(workflowId === undefined ? {} : { workflowId }),
      ...(status === undefined ? {} : { status }),
    });
    return toPage(listRuns, rows, { limit, idOf: (row) => row.id, toItem: toRun });
  });

  orgRoute(api, getRun, async ({ tx, params }) => {
    const row = await requireRun(tx, params.run_id);
    return {
      ...toRun(row),
      input: row.input,
      output: row.output,
      nodes: toNodes(await documentOf(tx, row), row.cursor, await selectPlacements(tx, row.cursor)),
    };
  });

  orgRoute(api, listRunEvents, async ({ tx, params, query }) => {
    const { status } = await requireRun(tx, params.run_id);
    return { items: await selectEvents(tx, params.run_id, query), status };
  });

  orgRoute(api, cancelRun, async ({ tx, params, touched, afterCommit }) => {
    const row = await requireRun(tx, params.run_id);
    if (row.finished_at !== null)
      throw new ApiError("run_ended", { message: `The run has ended: ${row.status}.` });
    await requestCancel(tx, row.id);
    touched({ type: "run", id: row.id, name: row.workflow_name });
    afterCommit(changed(row.id));
    return toRun(await requireRun(tx, row.id));
  });

  orgRoute(api, resumeRun, async ({ tx, org, actor, params, body, touched, afterCommit }) => {
    const row = await requireRun(tx, params.run_id);
    const [waiting] = waitingIn(await documentOf(tx, row), row, ({ id }) => id === body.node);
    const signal = { approved: body.approved, output: body.output, by: nameOf(actor) };
    if (!waiting || !(await insertSignal(tx, { id: row.id, orgId: org.id }, { ...signal, ...waiting }))) {
      throw new ApiError("run_not_waiting");
    }
    touched({ type: "run", id: row.id, name: row.workflow_name }, { node: body.node, approved: body.approved });
    afterCommit(changed(row.id));
    return toRun(row);
  });

  orgRoute(api, sendRunEvent, async ({ tx, org, actor, params, body, touched, afterCommit }) => {
    const row = await requireRun(tx, params.run_id);
    const waiting = waitingIn(await documentOf(tx, row), row, ({ event }) => event === body.event);
    const signal = { approved: true, output: body.output, by: nameOf(actor) };
    const sent: string[] = [];
    for (const one of waiting) {
      if (await insertSignal(tx, { id: row.id, orgId: org.id }, { ...signal, ...one })) sent.push(one.node);
    }
    if (sent.length === 0)
      throw new ApiError("run_not_waiting", { message: `No node waits for the event ${body.event}.` });
    touched({ type: "run", id: row.id, name: row.workflow_name }, { event: body.event, nodes: sent });
    afterCommit(changed(row.id));
    return toRun(row);
  });

  orgRoute(api, retryRun, async ({ tx, org, actor, params, body, touched, afterCommit }) => {
    const row = await requireRun(tx, params.run_id);
    const refuse = (message: string) => new ApiError("run_not_failed", { message });
    if (row.cursor === null) throw refuse(`The run is ${row.status}.`);
    if (row.version < 0) throw refuse("This was the test of a step. Test the step again.");
    const version = body.version ?? row.version;
    const before = await documentOf(tx, row);
    if (version < row.version || !(await selectVersion(tx, row.workflow_id, version)))
      throw new ApiError("workflow_not_published");
    const after = await documentOf(tx, { ...row, version });
    const event = retryOf(row.cursor, { before, after }, { version, by: nameOf(actor) });
    if (typeof event === "string") throw refuse(event);
    const target = { id: row.id, lastSeq: row.last_seq, userId: await userBehind(tx, org.id, actor) };
    if (!(await storeRetry(tx, target, event, applyEvent(row.cursor, event))))
      throw refuse("The run has changed meanwhile.");
    touched({ type: "run", id: row.id, name: row.workflow_name }, { version, nodes: event.again });
    afterCommit(changed(row.id));
    return toRun(await requireRun(tx, row.id));
  });
}

/** Nodes that wait for a person or an event. */
function waitingIn(
  { nodes }: WorkflowDocument,
  { finished_at, cursor }: RunRow,
  isMeant: (node: { id: string; event: string | undefined }) => boolean,
): { node: string; attempt: number }[] {
  if (finished_at !== null) return [];
  return Object.entries(cursor?.nodes ?? {}).flatMap(([id, state]) => {
    const node = nodes[id];
    if (state.status !== "waiting" || node?.type !== "wait" || node.for !== undefined) return [];
    return isMeant({ id, event: node.event }) ? [{ node: id, attempt: state.attempt }] : [];
  });
}

type RunRequest = {
  workflow: WorkflowRow;
  version: number;
  input: unknown;
  org: { id: string; role: string };
  actor: Actor;
  correlationId: string;
};

/** Returns its id. */
export async function storeRun(
  api: Pick<ApiContext, "workflowQueue">,
  tx: Tx,
  { workflow, version, input, org, actor, correlationId }: RunRequest,
): Promise<string> {
  if (Buffer.byteLength(JSON.stringify(input)) > MOST_RUN_INPUT_BYTES) {
    throw new ApiError("run_input_too_large", {
      message: `The input has more than ${MOST_RUN_INPUT_BYTES} bytes.`,
    });
  }
  const id = uuidv7();
  await insertRun(
    tx,
    {
      ...{ id, orgId: org.id, workflowId: workflow.id, version, input, correlationId },
      userId: await userBehind(tx, org.id, actor),
      queue: api.workflowQueue,
    },
    auditActor(actor, org.role),
  );
  return id;
}

export async function requireRun(tx: Tx, id: string): Promise<RunRow> {
  const row = await selectRun(tx, id);
  if (!row) throw new ApiError("not_found");
  return row;
}

async function documentOf(tx: Tx, row: Pick<RunRow, "workflow_id" | "version">) {
  const version = await selectVersion(tx, row.workflow_id, row.version);
  const read = version && readWorkflow(version.source);
  if (read?.ok) return read.document;
  throw new Error(`version ${row.version} of workflow ${row.workflow_id} cannot be read`);
}

/** Whose secrets the steps may use: the person's, or, if there is none, those of the organization's service user. */
async function userBehind(tx: Tx, orgId: string, actor: Actor): Promise<string> {
  const person = actor.type === "user" ? actor : actor.type === "token" ? actor.person : null;
  return person?.id ?? (await serviceUserOf(tx, orgId)).actor_id;
}
