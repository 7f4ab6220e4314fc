// Receives the results that nodes report. What a report means is decided here from plain data; results that arrive
// together are stored by one statement, because the commit is what costs.

import type { TaskStatus } from "@holdfast/contracts/endpoints/tasks";
import { ApiError } from "@holdfast/contracts/errors";
import { MOST_RESULT_BYTES } from "@holdfast/contracts/node/limits";
import type { Outcome, TaskFailure, TaskResultReport, Verdict } from "@holdfast/contracts/node/protocol";
import { exhaustive } from "@holdfast/kit/exhaustive";
import { isDeeperThan } from "@holdfast/kit/json-depth";
import type { AnyTaskType } from "@holdfast/tasks/type";
import { isUnavailable, type Sql } from "../database/connect.ts";
import { createBatches } from "../mechanisms/batches.ts";
import { selectTypes } from "./delivery-queries.ts";
import { commonFailure, reportedFailure } from "./failures.ts";
import { acceptResults, type Judged, type ReportedResult } from "./transitions/accept-results.ts";

export type Results = {
  report(node: Reporting, reports: readonly TaskResultReport[]): Promise<{ task_id: string; verdict: Verdict }[]>;
  /** Undefined if the task or its type is unknown to this server. */
  typeOf(taskId: string): Promise<AnyTaskType | undefined>;
  /** Saves a query when its result comes. */
  rememberType(taskId: string, type: string): void;
  settled(): Promise<void>;
};

/** The agent that reports results. */
export type Reporting = { nodeId: string; instanceId?: string | undefined };

export type Accepted = {
  taskId: string;
  nodeId: string;
  revision: number;
  ordered: boolean;
  /** Undefined if the type is unknown to this server. */
  type: string | undefined;
  /** As it was stored. */
  ending: { id: string; status: TaskStatus; result: unknown; failure: TaskFailure | null };
};

const MOST_IN_ONE = 256;
const MOST_REMEMBERED = 20_000;
/** Maximum depth of a result: PostgreSQL could not read deeper JSON. */
const MOST_LEVELS = 100;

export function createResults(options: {
  /** Commits to the disk before it returns. */
  sql: Sql;
  types: ReadonlyMap<string, AnyTaskType>;
  atOnce: number;
  onAccepted(accepted: readonly Accepted[]): void;
}): Results {
  const { sql, types } = options;
  const typeNames = new Map<string, string>();

  const accepting = createBatches<ReportedResult, Judged | undefined>({
    most: MOST_IN_ONE,
    atOnce: options.atOnce,
    keyOf: (result) => result.taskId,
    concernsAll: isUnavailable,
    run: async (batch) => {
      const judged = new Map((await acceptResults(sql, batch)).map((one) => [one.task_id, one]));
      options.onAccepted(
        batch.flatMap((result) => {
          const one = judged.get(result.taskId);
          return one?.verdict === "accepted" ? [acceptedOf(result, one, typeNames.get(result.taskId))] : [];
        }),
      );
      return batch.map((result) => judged.get(result.taskId));
    },
  });

  const findTypes = async (taskIds: readonly string[]) => {
    const unknown = taskIds.filter((id) => !typeNames.has(id));
    if (unknown.length > 0) for (const row of await selectTypes(sql, unknown)) rememberType(row.id, row.type);
    return (id: string) => types.get(typeNames.get(id) ?? "");
  };

  const rememberType = (taskId: string, type: string) => {
    // Removes the oldest: a Map keeps insertion order.
    if (typeNames.size >= MOST_REMEMBERED) for (const oldest of typeNames.keys().take(1)) typeNames.delete(oldest);
    typeNames.set(taskId, type);
  };

  return {
    rememberType,
    typeOf: async (taskId) => (await findTypes([taskId]))(taskId),
    settled: () => accepting.settled(),
    async report(node, reports) {
      const typeOf = await findTypes(reports.map((report) => report.task_id));
      return Promise.all(
        reports.map(async (report) => {
          const judged = await accepting.add(reportedResult(node, report, typeOf(report.task_id)));
          if (judged?.verdict === "revoked") throw new ApiError("identity_revoked");
          if (judged?.verdict === "accepted") typeNames.delete(report.task_id);
          return { task_id: report.task_id, verdict: judged?.verdict ?? "unknown" };
        }),
      );
    },
  };
}

function acceptedOf(reported: ReportedResult, judged: Judged, type: string | undefined): Accepted {
  const { taskId, nodeId, result, failure } = reported;
  const { status, revision, ordered } = judged;
  return {
    taskId,
    nodeId,
    revision,
    ordered,
    type,
    ending: {
      id: taskId,
      status,
      result: result === null ? null : JSON.parse(result),
      failure: failure === null ? null : (JSON.parse(failure) as TaskFailure),
    },
  };
}

function reportedResult(
  { nodeId, instanceId }: Reporting,
  report: TaskResultReport,
  type: AnyTaskType | undefined,
): ReportedResult {
  const outcome = JSON.stringify(report.outcome);
  if (Buffer.byteLength(outcome) > MOST_RESULT_BYTES) {
    throw new ApiError("result_too_large", { details: { task_id: report.task_id, limit: MOST_RESULT_BYTES } });
  }
  const { event, result, failure } = settle(type, report.outcome);
  return {
    nodeId,
    instanceId,
    taskId: report.task_id,
    generation: report.generation,
    event,
    result: result === undefined ? null : JSON.stringify(result),
    failure: failure === undefined ? null : JSON.stringify(failure),
    timings: JSON.stringify(report.timings),
    outcome,
  };
}

type Settled = Pick<ReportedResult, "event"> & { result?: unknown; failure?: ReturnType<typeof commonFailure> };

/** The event that a report stands for. A result that does not match the type's schema is a failure. */
function settle(type: AnyTaskType | undefined, outcome: Outcome): Settled {
  if (isDeeperThan(outcome, MOST_LEVELS))
    return { event: "result_failed", failure: commonFailure("result_invalid") };
  switch (outcome.status) {
    case "succeeded": {
      const checked = type ? type.result.safeParse(outcome.result) : { success: true, data: outcome.result };
      if (!checked.success) return { event: "result_failed", failure: commonFailure("result_invalid") };
      return { event: "result_succeeded", result: checked.data ?? null };
    }
    case "cancelled":
      return { event: "result_cancelled", failure: reportedFailure(type, outcome.failure) };
    case "failed":
    case "refused":
    case "interrupted":
      return { event: "result_failed", failure: reportedFailure(type, outcome.failure) };
    default:
      return exhaustive(outcome);
  }
}
