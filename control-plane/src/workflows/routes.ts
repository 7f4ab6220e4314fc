// Workflows over HTTP: drafts, which may be wrong, and published versions, which are not.

import {
  applyWorkflow,
  deleteWorkflow,
  getWorkflow,
  getWorkflowVersion,
  listWorkflows,
  listWorkflowVersions,
  MOST_WORKFLOW_VERSIONS,
  MOST_WORKFLOWS,
  publishWorkflow,
  type WorkflowChange,
  type WorkflowProblem,
} from "@holdfast/contracts/endpoints/workflows";
import { ApiError } from "@holdfast/contracts/errors";
import { uuidv7 } from "@holdfast/kit/uuid";
import { diffWorkflows } from "@holdfast/workflows/document/diff";
import { readWorkflow } from "@holdfast/workflows/document/read";
import type { ApiContext } from "../api/context.ts";
import { pageStart, toPage } from "../api/page.ts";
import { orgRoute } from "../api/route.ts";
import type { Tx } from "../database/connect.ts";
import { nameOf } from "../people/actor.ts";
import {
  countWorkflows,
  insertVersion,
  insertWorkflow,
  lockWorkflows,
  markDeleted,
  selectVersion,
  selectVersions,
  selectWorkflow,
  selectWorkflows,
  toWorkflow,
  updateDraft,
  type WorkflowRow,
} from "./queries.ts";
import { removeTriggers, selectTriggers, toTrigger } from "./triggers/queries.ts";
import { syncTriggers } from "./triggers/sync.ts";

export function workflowRoutes(api: ApiContext): void {
  orgRoute(api, listWorkflows, async ({ tx, query }) => {
    const { limit, cursor, name } = query;
    const page = { before: pageStart(listWorkflows, cursor), limit, ...(name === undefined ? {} : { name }) };
    const rows = await selectWorkflows(tx, page);
    return toPage(listWorkflows, rows, { limit, idOf: (row) => row.id, toItem: toWorkflow });
  });

  orgRoute(api, getWorkflow, async ({ tx, params }) => {
    const row = await requireWorkflow(tx, params.workflow_id);
    const triggers = (await selectTriggers(tx, row.id)).map(toTrigger);
    return { ...toWorkflow(row), source: row.source, problems: problemsOf(row.source), triggers };
  });

  orgRoute(api, applyWorkflow, async ({ tx, org, actor, body, touched }) => {
    const { name, source, revision } = body;
    await lockWorkflows(tx, org.id);
    const known = await selectWorkflow(tx, { name }, { lock: true });
    requireRevision(known?.revision ?? 0, revision);
    const problems = problemsOf(source);
    const draft = { source, valid: problems.length === 0, by: nameOf(actor) };
    const id = known?.id ?? uuidv7();
    if (!known) {
      if ((await countWorkflows(tx)) >= MOST_WORKFLOWS) throw tooMany();
      await insertWorkflow(tx, { id, orgId: org.id, name }, draft);
    } else if (known.source !== source) await updateDraft(tx, id, draft);
    const row = await requireWorkflow(tx, id);
    touched({ type: "workflow", id, name }, { revision: row.revision, valid: draft.valid });
    return { ...toWorkflow(row), problems };
  });

  orgRoute(api, publishWorkflow, async ({ tx, actor, params, body, touched, afterCommit }) => {
    const row = await requireWorkflow(tx, params.workflow_id, { lock: true });
    requireRevision(row.revision, body.revision);
    const { version, changes } = await publish(tx, row, nameOf(actor));
    touched({ type: "workflow", id: row.id, name: row.name }, { version, revision: row.revision });
    afterCommit(() => api.signals.publish("workflow_trigger", [row.id]));
    return { workflow: toWorkflow(await requireWorkflow(tx, row.id)), version, changes };
  });

  orgRoute(api, listWorkflowVersions, async ({ tx, params, query }) => {
    const row = await requireWorkflow(tx, params.workflow_id);
    return { items: await selectVersions(tx, row.id, { limit: query.limit, before: query.before }) };
  });

  orgRoute(api, getWorkflowVersion, async ({ tx, params, query }) => {
    const row = await requireWorkflow(tx, params.workflow_id);
    const number = query.number ?? row.published_version;
    const version = number === null ? undefined : await selectVersion(tx, row.id, number);
    if (!version) throw new ApiError("not_found");
    return version;
  });

  orgRoute(api, deleteWorkflow, async ({ tx, params, touched }) => {
    const row = await requireWorkflow(tx, params.workflow_id, { lock: true });
    await markDeleted(tx, row.id);
    await removeTriggers(tx, row.id);
    touched({ type: "workflow", id: row.id, name: row.name }, { published_version: row.published_version });
    return undefined;
  });
}

/** A draft that says the same as the newest version is that version. */
async function publish(
  tx: Tx,
  row: WorkflowRow,
  by: string,
): Promise<{ version: number; changes: WorkflowChange[] }> {
  const draft = readWorkflow(row.source);
  if (!draft.ok) {
    const count = draft.problems.length === 1 ? "a problem" : `${draft.problems.length} problems`;
    const message = `The draft of ${row.name} has ${count}.`;
    throw new ApiError("workflow_invalid", { message, details: { problems: draft.problems } });
  }
  await syncTriggers(tx, row, draft.document);
  const newest = row.published_version;
  if (newest !== null && row.published_revision === row.revision) return { version: newest, changes: [] };
  const before = newest === null ? undefined : await selectVersion(tx, row.id, newest);
  const published = before && readWorkflow(before.source);
  const version = (newest ?? 0) + 1;
  if (version > MOST_WORKFLOW_VERSIONS) {
    throw new ApiError("conflict", {
      message: `A workflow has at most ${MOST_WORKFLOW_VERSIONS} versions.`,
      nextStep: "Apply it under another name.",
    });
  }
  await insertVersion(tx, row, { version, by });
  return { version, changes: published?.ok ? diffWorkflows(published.document, draft.document) : [] };
}

function problemsOf(source: string): WorkflowProblem[] {
  const read = readWorkflow(source);
  return read.ok ? [] : read.problems;
}

function requireRevision(actual: number, expected: number | undefined): void {
  if (expected === undefined || expected === actual) return;
  throw new ApiError("workflow_changed", {
    message: `The draft has revision ${actual}, and the request is about revision ${expected}.`,
    details: { revision: actual },
  });
}

async function requireWorkflow(tx: Tx, id: string, options?: { lock: boolean }): Promise<WorkflowRow> {
  const row = await selectWorkflow(tx, { id }, options);
  if (!row) throw new ApiError("not_found");
  return row;
}

function tooMany(): ApiError {
  return new ApiError("conflict", {
    message: `An organization has at most ${MOST_WORKFLOWS} workflows.`,
    nextStep: "Delete workflows that are no longer used: `holdfast workflow delete <name>`.",
  });
}
