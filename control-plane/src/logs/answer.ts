// Answers requests for log lines: each process for itself, with a database directly; an api also passes requests on to the
// gateways that follow it. Idempotent: a process answers a request once, whoever else noticed it.

import type { LogAnswer, LogRequest } from "@holdfast/contracts/internal/logs";
import { answerLogRequest } from "@holdfast/service/log-store/answer";
import type { OwnProcess } from "@holdfast/service/log-store/own-process";
import type { Sql } from "../database/connect.ts";
import type { Signals } from "../mechanisms/signals.ts";

type Answering = { system: Sql; signals: Signals; own: OwnProcess; presence: { id: string } };

/** Returns the requests that this process has answered now. */
export async function answerOpenRequests({ system, signals, own, presence }: Answering): Promise<LogRequest[]> {
  const open = await system<{ request: LogRequest }[]>`
    SELECT request FROM log_requests r
    WHERE asked_at > now() - interval '1 minute' AND NOT EXISTS (
      SELECT FROM log_answers a WHERE a.request_id = r.id AND a.process_id = ${presence.id})`;
  const requests = open.map(({ request }) => request);
  for (const request of requests) {
    await storeAnswer(system, request.request_id, presence.id, answerLogRequest(own, request));
  }
  signals.publish(
    "log_answer",
    requests.map(({ request_id }) => request_id),
  );
  return requests;
}

/** One that nobody waits for any more is dropped. */
export async function storeAnswer(
  system: Sql,
  requestId: string,
  processId: string,
  answer: LogAnswer,
): Promise<void> {
  await system`
    INSERT INTO log_answers (request_id, process_id, answer)
    SELECT id, ${processId}::uuid, ${JSON.stringify(answer)}::text::json FROM log_requests WHERE id = ${requestId}
    ON CONFLICT DO NOTHING`;
}
