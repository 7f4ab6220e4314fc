// A turn of the engine: continues all runs that have something to do, some at a time, until there are none.

import type { Log } from "@holdfast/service/log";
import { readWorkflow } from "@holdfast/workflows/document/read";
import { millisecondsOf, type WorkflowDocument } from "@holdfast/workflows/document/schema";
import { type Evaluator, openEvaluator } from "@holdfast/workflows/expressions/evaluator";
import { applyEvent, initialState, type RunState } from "@holdfast/workflows/run/state";
import type { Sql } from "../../database/connect.ts";
import { allowanceOf } from "../../notify/send/addresses.ts";
import { selectVersion } from "../queries.ts";
import {
  CLAIM_SECONDS,
  type ClaimedRun,
  claimRuns,
  renewClaims,
  restartRun,
  startRun,
  wakeAnswered,
} from "../runs/transitions/claim.ts";
import { MOST_RUN_HOURS } from "../runs/transitions/create.ts";
import type { AskForSecret } from "../step-secrets/ask.ts";
import { type Continuation, continueRun } from "./continue.ts";
import { openGateway } from "./gateway.ts";

export type EngineOptions = {
  system: Sql;
  log: Log;
  gateway: { url: string | undefined; token: string | undefined };
  /** Networks that http.request may reach beside public addresses. */
  allowedNetworks: readonly string[];
  /** Without it, steps of the worker get no secrets. */
  askForSecret?: AskForSecret;
  pollMs: number;
  concurrency: number;
  stepTimeoutMs: number;
  /** Whose runs are continued. */
  queue: string;
  runsPerOrg: number;
  /** A run got new events. */
  onProgress?: (runId: string) => void;
};

const TICK_MS = 250;
const MOST_RUN_MS = MOST_RUN_HOURS * 3_600_000;
const RENEW_EVERY_MS = (CLAIM_SECONDS * 1000) / 3;

export async function continueRuns(options: EngineOptions): Promise<{ continued: number }> {
  const { system, log } = options;
  await wakeAnswered(system);
  const held = new Map<ClaimedRun, Promise<void>>();
  let evaluator: Evaluator | undefined;
  let renewed = performance.now();
  let continued = 0;
  try {
    for (;;) {
      const limit = options.concurrency - held.size;
      const claimed =
        limit > 0 ? await claimRuns(system, { limit, mostPerOrg: options.runsPerOrg, queue: options.queue }) : [];
      if (claimed.length > 0) evaluator ??= openEvaluator({ processes: 2 });
      for (const run of claimed) {
        const tools = toolsFor(options, evaluator as Evaluator);
        const work = begin(tools, run)
          .catch((error: Error) =>
            log.error({ err: error, run_id: run.id, correlation_id: run.correlation_id }, "run not continued"),
          )
          .finally(() => held.delete(run));
        held.set(run, work);
        continued += 1;
      }
      if (held.size === 0) return { continued };
      await Promise.race([...held.values(), new Promise((resolve) => setTimeout(resolve, TICK_MS))]);
      if (performance.now() - renewed > RENEW_EVERY_MS && held.size > 0) {
        renewed = performance.now();
        await renewClaims(system, [...held.keys()]);
      }
    }
  } finally {
    await evaluator?.close();
  }
}

function toolsFor(options: EngineOptions, { evaluate }: Evaluator): Continuation {
  const { system, log, pollMs, stepTimeoutMs, askForSecret = async () => "late" as const } = options;
  const allowance = allowanceOf(options.allowedNetworks);
  const { onProgress = () => undefined } = options;
  const gateway = openGateway(options.gateway);
  return { system, log, pollMs, stepTimeoutMs, evaluate, allowance, askForSecret, gateway, onProgress };
}

async function begin(tools: Continuation, run: ClaimedRun): Promise<void> {
  const document = await documentOf(tools.system, run);
  if (run.cursor !== null) {
    if (run.status === "queued" && !(await restartRun(tools.system, run))) return;
    await continueRun(tools, run, { document, cursor: run.cursor as RunState, lastSeq: run.last_seq });
    return;
  }
  const event = { type: "run_started" as const, input: run.input, version: run.version };
  const cursor = applyEvent(initialState(document), event);
  const started = { ...run, started_at: new Date() };
  const mostMs = document.timeout === undefined ? MOST_RUN_MS : millisecondsOf(document.timeout);
  if (await startRun(tools.system, run, { cursor, event: { input: run.input, version: run.version }, mostMs })) {
    tools.onProgress(run.id);
    await continueRun(tools, started, { document, cursor, lastSeq: 1 });
  }
}

/** Versions never change, and reading one takes longer than a step. */
const documents = new Map<string, WorkflowDocument>();
const MOST_DOCUMENTS = 200;

/** What was published has been valid; a later version of the product reads it in the same way, or not at all. */
async function documentOf(system: Sql, run: ClaimedRun): Promise<WorkflowDocument> {
  const key = `${run.workflow_id}:${run.version}`;
  const known = documents.get(key);
  if (known) return known;
  const version = await selectVersion(system, run.workflow_id, run.version);
  const read = version && readWorkflow(version.source);
  if (!read?.ok) throw new Error(`version ${run.version} of workflow ${run.workflow_id} cannot be read`);
  const [oldest] = documents.keys();
  if (documents.size >= MOST_DOCUMENTS && oldest !== undefined) documents.delete(oldest);
  documents.set(key, read.document);
  return read.document;
}
