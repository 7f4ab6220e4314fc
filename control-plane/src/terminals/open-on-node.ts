// Has a node open a terminal, and says in the words of terminals why it did not. Whether the terminal is
// ready is not decided here: that is seen at the gateway.

import type { AnswerOf } from "@holdfast/contracts/endpoint";
import { ApiError, type ErrorCode } from "@holdfast/contracts/errors";
import type { openTerminal } from "@holdfast/contracts/service-endpoints";
import { type CommonFailure, commonTaskFailures } from "@holdfast/contracts/task-failures";
import {
  isTerminalFailure,
  type TerminalFailureCode,
  terminalFailures,
} from "@holdfast/contracts/terminal-failures";
import type { Log } from "@holdfast/service/log";
import { actorOf } from "../audit/record.ts";
import type { Sql } from "../database/connect.ts";
import { freshnessOf } from "../nodes/freshness.ts";
import { hasOldTerminalAddress } from "../profiles/profile.ts";
import type { TaskEnding, TaskEngine } from "../tasks/engine.ts";
import { selectTask } from "../tasks/queries.ts";
import { noteTask, type Opening, selectOpening } from "./queries.ts";

/** The gateway hears the reason a little before its own time is over. */
const AHEAD_MS = 500;
/** Timers may fire a little early. */
const CLOCK_MS = 20;

type Answer = AnswerOf<typeof openTerminal>;
type Size = { cols: number; rows: number };

export type OpenOptions = {
  system: Sql;
  tasks: TaskEngine;
  staleAfterSeconds: number;
  detachedSeconds: number;
  log: Log;
  /** The chain has a step more. */
  onSent(sessionId: string): void;
};

export async function openOnNode(
  options: OpenOptions,
  sessionId: string,
  size: Size,
  signal: AbortSignal,
): Promise<Answer> {
  const { system } = options;
  const session = await selectOpening(system, sessionId);
  if (session?.state !== "opening" || session.gateway_id === null) return refuse("terminal_session_unknown");
  if (session.close_code !== null) return refuse("terminal_access_ended");
  if (freshnessOf(ageMsOf(session), options.staleAfterSeconds) !== "online") {
    return refuse("terminal_node_offline", silence(session));
  }
  const waitMs = session.left_ms - AHEAD_MS;
  // A task that was made before is looked at all the same: the node may have taken it.
  if (waitMs <= 0 && session.task_id === null) return refuse("terminal_open_not_taken");
  const deadline = performance.now() + waitMs;
  let taskId = session.task_id;
  const onMade = (id: string) => {
    taskId = id;
  };
  let ended: TaskEnding | undefined;
  try {
    ended = taskId
      ? await awaitTask(options, taskId, { waitMs, signal })
      : await runTask(options, session, size, { waitMs, signal, onMade });
  } catch (error) {
    const answer = error instanceof ApiError ? refusedTask(error) : undefined;
    if (answer) return answer;
    throw error;
  }
  if (ended) return answerTo(ended, options, session);
  const isOver = performance.now() >= deadline - CLOCK_MS;
  // The server stops. The task goes on: the gateway asks another replica, which waits for its end.
  if (signal.reason instanceof ApiError || (!isOver && !signal.aborted)) throw new ApiError("shutting_down");
  if (taskId) await cancel(options, taskId);
  return late(options, session, taskId);
}

async function runTask(
  { tasks, system, detachedSeconds, log, onSent }: OpenOptions,
  session: Opening,
  size: Size,
  waiting: { waitMs: number; signal: AbortSignal; onMade(taskId: string): void },
): Promise<TaskEnding | undefined> {
  const seconds = Math.max(1, Math.floor(waiting.waitMs / 1000));
  const sentAt = new Date().toISOString();
  let noted: Promise<void> | undefined;
  const onMade = (id: string) => {
    waiting.onMade(id);
    // Beside the way to the node, which nothing may delay.
    noted = noteTask(system, session.id, { id, sentAt }).then(
      () => onSent(session.id),
      (error: unknown) => log.warn({ err: error, session_id: session.id }, "a terminal's task was not noted"),
    );
  };
  const task = {
    nodeId: session.node_id,
    type: "terminal.open",
    params: {
      session_id: session.id,
      allocation_id: session.allocation_id,
      username: session.username,
      ...size,
      correlation_id: session.correlation_id,
      within_seconds: seconds,
      detached_seconds: detachedSeconds,
    },
    priority: 9,
    expiresInSeconds: seconds,
    by: actorOf(session),
    allocationId: session.allocation_id,
    correlationId: session.correlation_id,
  };
  try {
    return await tasks.run(task, { waitMs: waiting.waitMs, signal: waiting.signal, onMade });
  } finally {
    await noted;
  }
}

/** The gateway asks again after its connection broke. */
async function awaitTask(
  { tasks, system }: OpenOptions,
  taskId: string,
  waiting: { waitMs: number; signal: AbortSignal },
): Promise<TaskEnding | undefined> {
  await tasks.changed({ id: taskId, revision: undefined }, { ...waiting, until: "end" });
  const row = await selectTask(system, taskId);
  return row?.finished_at ? row : undefined;
}

/** Nobody waits for it any more: what was not begun need not be, and what was begun is undone. */
async function cancel({ tasks, system }: OpenOptions, taskId: string): Promise<void> {
  const task = await system.begin((tx) => tasks.cancel(tx, taskId));
  if (task) tasks.cancelled(task);
}

async function answerTo(ended: TaskEnding, options: OpenOptions, session: Opening): Promise<Answer> {
  if (ended.status === "completed") return { ended: true, failure: null };
  const { code, message } = ended.failure ?? { code: "executor_failed", message: "" };
  const own = isTerminalFailure(code) ? code : codeOf(code);
  if (own === "terminal_node_stream_timeout") return timeout(options, session, message);
  return refuse(own, message);
}

/** Not ended in time: it was never taken, or it was, and nothing came. */
async function late(options: OpenOptions, session: Opening, taskId: string | null): Promise<Answer> {
  const task = taskId === null ? undefined : await selectTask(options.system, taskId);
  return task && task.generation > 0 ? timeout(options, session) : refuse("terminal_open_not_taken");
}

/** A node that was told another address could not but miss the gateway. */
async function timeout({ system }: OpenOptions, session: Opening, message?: string): Promise<Answer> {
  if (await hasOldTerminalAddress(system, session.node_id)) return refuse("terminal_env_profile_drift");
  return refuse("terminal_node_stream_timeout", message);
}

/** What every task may end with. */
const byTaskFailure: Record<CommonFailure, TerminalFailureCode> = {
  task_type_unknown: "terminal_open_not_taken",
  task_params_invalid: "terminal_open_not_taken",
  task_signature_invalid: "terminal_open_not_taken",
  task_key_unknown: "terminal_open_not_taken",
  task_wrong_node: "terminal_open_not_taken",
  task_expired: "terminal_open_not_taken",
  clock_skew: "terminal_open_not_taken",
  task_replayed: "terminal_open_not_taken",
  capability_missing: "terminal_open_not_taken",
  task_not_taken: "terminal_open_not_taken",
  task_cancelled: "terminal_access_ended",
  task_timed_out: "terminal_node_stream_timeout",
  task_result_missing: "terminal_node_stream_timeout",
  task_interrupted: "terminal_pty_failed",
  result_too_large: "terminal_pty_failed",
  result_invalid: "terminal_pty_failed",
  executor_failed: "terminal_pty_failed",
};

function codeOf(code: string): TerminalFailureCode {
  return Object.hasOwn(commonTaskFailures, code) ? byTaskFailure[code as CommonFailure] : "terminal_pty_failed";
}

/** Why the task was not even made. */
const byRefusal: Partial<Record<ErrorCode, TerminalFailureCode>> = {
  node_not_active: "terminal_node_offline",
  not_found: "terminal_node_offline",
  capability_missing: "terminal_open_not_taken",
  task_type_unknown: "terminal_open_not_taken",
};

function refusedTask(error: ApiError): Answer | undefined {
  const code = byRefusal[error.code];
  return code && refuse(code, error.message);
}

function refuse(code: TerminalFailureCode, message?: string): Answer {
  return { ended: true, failure: { code, message: message || terminalFailures[code].message } };
}

function ageMsOf({ silent_seconds }: Opening): number | undefined {
  return silent_seconds === null ? undefined : silent_seconds * 1000;
}

function silence({ node_name, silent_seconds }: Opening): string {
  if (silent_seconds === null) return `${node_name} has never been heard of.`;
  if (silent_seconds < 0) {
    return `The last heartbeat of ${node_name} is recorded in the future: a clock of the control plane was wrong.`;
  }
  return `${node_name} was last heard of ${Math.round(silent_seconds)} seconds ago.`;
}
