// Has a node open a terminal, and translates failures of the task into failures of terminals. The gateway, not this code,
// observes whether the terminal is ready. There are two requests: the first returns as soon as the task is stored, so that
// the step of the chain is reported when it happens; the second waits for the end of the task.

import type { AnswerOf } from "@holdfast/contracts/endpoint";
import { ApiError, type ErrorCode } from "@holdfast/contracts/errors";
import type { awaitTerminalTask, openTerminal } from "@holdfast/contracts/internal/endpoints";
import { type CommonFailure, commonTaskFailures } from "@holdfast/contracts/node/task-failures";
import {
  isTerminalFailure,
  type TerminalFailureCode,
  terminalFailures,
} from "@holdfast/contracts/reasons/terminal";
import { apiWaitMs, taskSeconds } from "@holdfast/contracts/terminal/deadlines";
import type { Log } from "@holdfast/service/log";
import type { NodeServices } from "../api/context.ts";
import { actorOf } from "../audit/record.ts";
import type { Sql } from "../database/connect.ts";
import { freshnessOf, type Heard } from "../nodes/presence/freshness.ts";
import { hasOldTerminalAddress } from "../profiles/profile.ts";
import type { TaskEnding, TaskEngine } from "../tasks/engine.ts";
import { selectTask } from "../tasks/queries.ts";
import { noteTask, type Opening, selectOpening } from "./queries.ts";
import { startConsole } from "./start-console.ts";

/** Timers may fire a little early. */
const CLOCK_MS = 20;

type Sent = AnswerOf<typeof openTerminal>;
type Ended = AnswerOf<typeof awaitTerminalTask>;
type Why = NonNullable<Ended["failure"]>;
type Size = { cols: number; rows: number };

export type OpenOptions = {
  system: Sql;
  tasks: TaskEngine;
  nodes: Pick<NodeServices, "staleAfterSeconds">;
  detachedSeconds: number;
  log: Log;
  /** Called when a step of the chain was stored. */
  onSent(sessionId: string): void;
};

/** A gateway that repeats the request after a lost connection gets the task that was created the first time. */
export async function openOnNode(
  options: OpenOptions,
  { sessionId, gatewayId }: { sessionId: string; gatewayId: string },
  size: Size,
): Promise<Sent> {
  const { system } = options;
  const session = await selectOpening(system, sessionId);
  if (session?.state !== "opening" || session.gateway_id === null) return notSent(why("terminal_session_unknown"));
  if (session.gateway_id !== gatewayId) throw new ApiError("terminal_moved");
  if (session.close_code !== null) return notSent(closing(session.close_code));
  if (session.task_id !== null) return { sent: true, task_id: session.task_id };
  if (freshnessOf(heardOf(session), options.nodes.staleAfterSeconds) !== "online") {
    return notSent(why("terminal_node_offline", describeLastHeartbeat(session)));
  }
  if (apiWaitMs(session.left_ms) <= 0) return notSent(why("terminal_open_unconfirmed"));
  try {
    return { sent: true, task_id: await startTask(options, session, size) };
  } catch (error) {
    const refused = error instanceof ApiError ? refusedTask(error) : undefined;
    if (refused) return notSent(refused);
    throw error;
  }
}

/** Waits until the task has ended, or until the gateway needs the reason why there is no stream. */
export async function awaitOpening(
  options: OpenOptions,
  { sessionId, gatewayId, taskId }: { sessionId: string; gatewayId: string; taskId: string },
  signal: AbortSignal,
): Promise<Ended> {
  const { system, tasks } = options;
  const session = await selectOpening(system, sessionId);
  if (session?.state !== "opening") return { failure: null };
  if (session.gateway_id !== gatewayId) throw new ApiError("terminal_moved");
  const waitMs = apiWaitMs(session.left_ms);
  const deadline = performance.now() + waitMs;
  await tasks.changed({ id: taskId, revision: undefined }, { waitMs, signal, until: "end" });
  const ended = await selectTask(system, taskId);
  if (ended?.finished_at) return { failure: await failureOf(ended, options, session) };
  const isOver = performance.now() >= deadline - CLOCK_MS;
  // The server stops. The task continues: the gateway sends the request to another replica, which waits for its end.
  if (signal.reason instanceof ApiError || (!isOver && !signal.aborted)) throw new ApiError("shutting_down");
  await cancel(options, taskId);
  return { failure: await late(options, session, taskId) };
}

async function startTask(
  { tasks, system, detachedSeconds, log, onSent }: OpenOptions,
  session: Opening,
  size: Size,
): Promise<string> {
  const seconds = taskSeconds(session.left_ms);
  const { id: session_id, allocation_id, username, correlation_id, node_id: nodeId } = session;
  const times = { within_seconds: seconds, detached_seconds: detachedSeconds };
  const common = {
    nodeId,
    priority: 9,
    expiresInSeconds: seconds,
    by: actorOf(session),
    correlationId: correlation_id,
  };
  const params = { session_id, allocation_id, username, ...size, correlation_id, ...times };
  const { id } = await (allocation_id === null
    ? startConsole(tasks, session, { common, times })
    : tasks.start({ ...common, type: "terminal.open", params, allocationId: allocation_id }));
  // The task is queued whether or not this is stored.
  await noteTask(system, session.id, { id, sentAt: new Date().toISOString() }).then(
    () => onSent(session.id),
    (error: unknown) => log.warn({ err: error, session_id: session.id }, "could not store the task of a terminal"),
  );
  return id;
}

/** No request waits for the task any more: it is not started, or it is undone if it was. */
async function cancel({ tasks, system }: OpenOptions, taskId: string): Promise<void> {
  const task = await system.begin((tx) => tasks.cancel(tx, taskId));
  if (task) tasks.cancelled(task);
}

async function failureOf(ended: TaskEnding, options: OpenOptions, session: Opening): Promise<Why | null> {
  if (ended.status === "completed") return null;
  const { code, message } = ended.failure ?? { code: "executor_failed", message: "" };
  const own = isTerminalFailure(code) ? code : codeOf(code);
  if (own === "terminal_node_stream_timeout") return timeout(options, session, message);
  // A request to close the terminal may have arrived before the node was done.
  const now = code === "task_cancelled" ? await selectOpening(options.system, session.id) : undefined;
  return now?.close_code ? closing(now.close_code) : why(own, message);
}

/** The task did not end in time: the node never took it, or took it and reported nothing. */
async function late(options: OpenOptions, session: Opening, taskId: string): Promise<Why> {
  const task = await selectTask(options.system, taskId);
  return task && task.generation > 0 ? timeout(options, session) : why("terminal_open_not_taken");
}

/** A node with an outdated gateway address cannot reach the gateway. */
async function timeout({ system }: OpenOptions, session: Opening, message?: string): Promise<Why> {
  if (await hasOldTerminalAddress(system, session.node_id)) return why("terminal_env_profile_drift");
  return why("terminal_node_stream_timeout", message);
}

/** By the failures that a task of any type may end with. */
const byTaskFailure: Record<CommonFailure, TerminalFailureCode> = {
  task_type_unknown: "terminal_open_not_taken",
  task_params_invalid: "terminal_open_not_taken",
  task_secrets_missing: "terminal_open_not_taken",
  task_signature_invalid: "terminal_open_not_taken",
  task_key_unknown: "terminal_open_not_taken",
  task_wrong_node: "terminal_open_not_taken",
  task_expired: "terminal_open_not_taken",
  clock_skew: "terminal_open_not_taken",
  task_replayed: "terminal_open_not_taken",
  capability_missing: "terminal_open_not_taken",
  task_not_taken: "terminal_open_not_taken",
  task_cancelled: "terminal_open_not_taken",
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

/** By the errors for which no task is created. */
const byRefusal: Partial<Record<ErrorCode, TerminalFailureCode>> = {
  node_not_active: "terminal_node_offline",
  not_found: "terminal_node_offline",
  capability_missing: "terminal_open_not_taken",
  task_type_unknown: "terminal_open_not_taken",
};

function refusedTask(error: ApiError): Why | undefined {
  const code = byRefusal[error.code];
  return code && why(code, error.message);
}

const notSent = (failure: Why): Sent => ({ sent: false, failure });

function why(code: TerminalFailureCode, message?: string): Why {
  return { code, message: message || terminalFailures[code].message };
}

const closing = (code: string): Why => why(isTerminalFailure(code) ? code : "terminal_closed");

function heardOf({ silent_seconds, disconnected_seconds }: Opening): Heard {
  const inMs = (seconds: number | null) => (seconds === null ? undefined : seconds * 1000);
  return { ageMs: inMs(silent_seconds), disconnectedMs: inMs(disconnected_seconds) };
}

function describeLastHeartbeat({ node_name, silent_seconds, disconnected_seconds }: Opening): string {
  if (silent_seconds === null) return `${node_name} has never sent a heartbeat.`;
  if (silent_seconds < 0) {
    return `The last heartbeat of ${node_name} is recorded in the future: a clock of the control plane was wrong.`;
  }
  if (disconnected_seconds !== null) {
    return `The agent of ${node_name} has been disconnected for ${Math.round(disconnected_seconds)} seconds.`;
  }
  return `The last heartbeat of ${node_name} was ${Math.round(silent_seconds)} seconds ago.`;
}
