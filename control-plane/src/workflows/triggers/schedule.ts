// Starts the runs of schedules whose time has come. One transaction each moves a schedule to its next time and creates its runs, so that
// a crash does neither; a unique index repeats that a time starts one run.

import { ApiError } from "@holdfast/contracts/errors";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Log } from "@holdfast/service/log";
import { type Evaluate, openEvaluator } from "@holdfast/workflows/expressions/evaluator";
import { templatesIn } from "@holdfast/workflows/expressions/template";
import { fill } from "@holdfast/workflows/run/values";
import { type CronTrigger, dueTimes } from "@holdfast/workflows/triggers/due";
import { recordAudit } from "../../audit/record.ts";
import type { Sql, Tx } from "../../database/connect.ts";
import { serviceUser } from "../service-user.ts";
import { type LiveTrigger, requireRoom, startTriggered } from "./start.ts";

export type ScheduleOptions = {
  system: Sql;
  log: Log;
  queue: string;
  onStarted?(runIds: readonly string[]): void;
};

type DueTrigger = LiveTrigger & { definition: CronTrigger; next_at: Date; now: Date };

/** So that one turn ends. */
const MOST_IN_A_TURN = 1_000;

export async function startScheduledRuns(options: ScheduleOptions): Promise<{ started: number }> {
  const { system, log, onStarted } = options;
  let started = 0;
  for (let count = 0; count < MOST_IN_A_TURN; count += 1) {
    const runs = await system.begin(async (tx) => {
      const trigger = await lockDue(tx);
      return trigger && startDue(tx, trigger, options);
    });
    if (runs === undefined) break;
    started += runs.length;
    if (runs.length > 0) onStarted?.(runs);
  }
  if (started > 0) log.debug({ started }, "scheduled runs started");
  return { started };
}

/** By the database's clock. Locked, and left out for everybody else, until the transaction ends. */
async function lockDue(tx: Tx): Promise<DueTrigger | undefined> {
  const [row] = await tx<DueTrigger[]>`
    SELECT t.id, t.org_id, t.workflow_id, w.name AS workflow_name, w.published_version, o.service_user_id, t.definition, t.next_at, now() AS now
    FROM workflow_triggers t JOIN workflows w ON w.id = t.workflow_id JOIN organizations o ON o.id = t.org_id
    WHERE t.next_at <= now() AND w.published_version IS NOT NULL
    ORDER BY t.next_at LIMIT 1 FOR NO KEY UPDATE OF t SKIP LOCKED`;
  return row;
}

async function startDue(tx: Tx, trigger: DueTrigger, { log, queue }: ScheduleOptions): Promise<string[]> {
  const { definition, next_at: nextAt, now } = trigger;
  const due = dueTimes(definition, { nextAt, now });
  await tx`UPDATE workflow_triggers SET next_at = ${due.nextAt} WHERE id = ${trigger.id}`;
  const runs: string[] = [];
  for (const scheduledAt of due.start) {
    const correlationId = uuidv7();
    try {
      await requireRoom(tx, trigger.id);
      const input = await inputOf(definition, { scheduledAt, trigger });
      const by = { id: trigger.id, scheduledAt };
      const run = await startTriggered(tx, log, trigger, { input, correlationId, queue, by });
      if (run !== undefined) runs.push(run);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      await recordAudit(tx, log, {
        ...{
          orgId: trigger.org_id,
          by: serviceUser(trigger.service_user_id),
          action: "run.trigger",
          correlationId,
        },
        ...{ result: "failed", reason: error.code },
        target: { type: "workflow", id: trigger.workflow_id, name: trigger.workflow_name },
        details: { trigger_id: trigger.id, scheduled_at: scheduledAt.toISOString(), message: error.message },
      });
      // What holds for one time holds for the others of this outage.
      break;
    }
  }
  return runs;
}

/** Expressions in it can use `input.scheduled_at`. */
async function inputOf(
  { input }: CronTrigger,
  { scheduledAt, trigger }: { scheduledAt: Date; trigger: LiveTrigger },
): Promise<unknown> {
  const usual = { scheduled_at: scheduledAt.toISOString() };
  if (input === undefined) return usual;
  if (templatesIn(input).length === 0) return input;
  const run = { id: null, workflow: trigger.workflow_id, startedAt: scheduledAt.toISOString() };
  return withEvaluator(async (evaluate) => {
    try {
      return await fill(input, { input: usual, nodes: {}, run }, evaluate);
    } catch (error) {
      throw new ApiError("workflow_invalid", {
        message: `The input of the schedule cannot be computed: ${(error as Error).message}`,
      });
    }
  });
}

async function withEvaluator<T>(work: (evaluate: Evaluate) => Promise<T>): Promise<T> {
  const evaluator = openEvaluator({ processes: 1 });
  try {
    return await work(evaluator.evaluate);
  } finally {
    await evaluator.close();
  }
}
