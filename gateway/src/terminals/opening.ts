// Opens a terminal on its node through the api, and reports the outcome of the task to the session. The task only matters
// while there is no shell.

import { setTimeout as wait } from "node:timers/promises";
import { awaitTerminalTask, openTerminal, type TerminalGrant } from "@holdfast/contracts/internal/endpoints";
import { gatewayRequestMs } from "@holdfast/contracts/terminal/deadlines";
import { type BackoffPolicy, backoffDelay } from "@holdfast/kit/backoff";
import type { ApiLink } from "../api-link/link.ts";
import { failureOf, isTransient } from "./api-answers.ts";
import type { Session } from "./session.ts";

type Api = Pick<ApiLink, "ask" | "instanceId">;

export const retryPolicy: BackoffPolicy = { firstMs: 100, maxMs: 5_000 };

/** `signal`: the session has ended. */
export async function openOnNode(
  api: Api,
  { session, grant, signal }: { session: Session; grant: TerminalGrant; signal: AbortSignal },
): Promise<void> {
  const common = {
    params: { session_id: session.id },
    correlationId: grant.correlation_id,
    timeoutMs: gatewayRequestMs(grant.deadline_seconds),
    signal,
  };
  try {
    const size = { ...session.size(), gateway_id: api.instanceId };
    const opened = await api.ask(openTerminal, { ...common, body: size });
    if (!opened.sent) return session.apply({ type: "task_failed", ...detailOf(opened.failure) });
    session.apply({ type: "task_sent" });
    const { failure } = await awaitTask(api, session, {
      ...common,
      body: { task_id: opened.task_id, gateway_id: api.instanceId },
    });
    if (failure) session.apply({ type: "task_failed", ...detailOf(failure) });
    else session.apply({ type: "task_ended" });
  } catch (error) {
    if (signal.aborted) return;
    session.apply({ type: "task_failed", ...failureOf(error, "terminal_open_unconfirmed") });
  }
}

/** Retries while the api restarts: the task continues meanwhile, and the terminal has its own deadline. */
async function awaitTask(
  api: Api,
  session: Session,
  request: Parameters<typeof api.ask<typeof awaitTerminalTask>>[1],
) {
  for (let failures = 0; ; failures += 1) {
    try {
      return await api.ask(awaitTerminalTask, request);
    } catch (error) {
      if (session.state() !== "opening" || !isTransient(error)) throw error;
      await wait(backoffDelay(retryPolicy, failures), undefined, { ref: false });
      if (request.signal?.aborted) throw error;
    }
  }
}

const detailOf = ({ code, message: detail }: { code: string; message: string }) => ({ code, detail });
