// What agents report, on its way to the api: in order, until the api has taken it. Results and acceptances are never
// dropped. Output is, when an agent prints more than can be stored, and a marker says how much.

import type { AnswerOf } from "@holdfast/contracts/endpoint";
import type { ExecutionResult } from "@holdfast/contracts/execution/dispatch";
import {
  type ExecutionEvent,
  type ExecutionOffer,
  MOST_BATCH_BYTES,
  reportExecutionEvents,
} from "@holdfast/contracts/internal/executions";
import type { Log } from "@holdfast/service/log";
import { ApiUnreachable } from "../../api-link/client.ts";
import type { ApiLink } from "../../api-link/link.ts";
import { type Batched, createBatches } from "../batches.ts";
import type { ReportFrame } from "./frames.ts";
import { resultOf } from "./frames.ts";
import type { AgentSession } from "./session.ts";

export type EventVerdict = AnswerOf<typeof reportExecutionEvents>["verdicts"][number];

export type Reports = {
  /** False: it was dropped, because too much output of this agent waits already. */
  report(session: AgentSession, frame: Exclude<ReportFrame, { type: "drain" | "renew" }>, bytes: number): boolean;
  renewed(session: AgentSession, held: { requestId: string; generation: number }): void;
  /** Says that the agent of another system cannot run it; it was not sent to it. */
  declined(
    session: AgentSession,
    offer: Pick<ExecutionOffer, "request_id" | "session_id" | "generation">,
    reason: string,
  ): void;
  /** In place of the agent: the request ends with it. */
  failed(session: AgentSession, offer: { request_id: string; generation: number }, error: string): void;
  waiting(): number;
  flush(withinMs: number): Promise<void>;
  stop(): void;
};

export type ReportsOptions = {
  api: Pick<ApiLink, "ask" | "instanceId">;
  /** `bytes`: of the frame, roughly. */
  onVerdict(event: ExecutionEvent, verdict: EventVerdict, bytes: number): void;
  onDropped(): void;
  log: Log;
};

/** Of one agent, and of all: output beyond it is dropped. */
const mostUnsentLogBytes = { session: 512 * 1024, all: 16 * 1024 * 1024 };
/** Beside the texts of an event. */
const ENVELOPE_BYTES = 300;

export function createReports({ api, onVerdict, onDropped, log }: ReportsOptions): Reports {
  let logBytes = 0;
  /** Of deliveries whose renewal waits already. */
  const renewing = new Set<string>();
  const batches = createBatches<ExecutionEvent, EventVerdict>({
    most: { items: 256, bytes: MOST_BATCH_BYTES, atOnce: 1 },
    async send(events, signal) {
      const body = { gateway_id: api.instanceId, events };
      return (await api.ask(reportExecutionEvents, { body, signal })).verdicts;
    },
  });

  const onFailure: Batched<ExecutionEvent, EventVerdict>["onFailure"] = (error, event) => {
    const { type, request_id, session_id, agent_id } = event;
    if (type === "renewed") renewing.delete(keyOf(event));
    const details = { request_id, session_id, agent_id, reason: "code" in error ? error.code : error.message };
    if (error instanceof ApiUnreachable) log.warn(details, `the gateway stopped before the api had it: ${type}`);
    else log.error(details, `the api refused what an agent reported: ${type}`);
  };
  /** Counted until the api has it. */
  const add = (session: AgentSession, event: ExecutionEvent, textBytes: number, release?: () => void) => {
    const bytes = textBytes + ENVELOPE_BYTES;
    session.unsentReportBytes += bytes;
    const done = () => {
      session.unsentReportBytes -= bytes;
      release?.();
    };
    batches.add({
      item: event,
      bytes,
      until: Number.POSITIVE_INFINITY,
      onAnswer(verdict, item) {
        done();
        if (item.type === "renewed") renewing.delete(keyOf(item));
        onVerdict(item, verdict, bytes);
      },
      onFailure(error, item) {
        done();
        onFailure(error, item);
      },
    });
  };

  const addLog = (session: AgentSession, event: ExecutionEvent, bytes: number) => {
    session.unsentLogBytes += bytes;
    logBytes += bytes;
    add(session, event, bytes, () => {
      session.unsentLogBytes -= bytes;
      logBytes -= bytes;
    });
  };

  /** A marker in the place of what was dropped, before anything else of the request. */
  const reportDropped = (session: AgentSession, requestId: string) => {
    const dropped = session.dropped?.get(requestId);
    if (!dropped) return;
    session.dropped?.delete(requestId);
    if (session.dropped?.size === 0) session.dropped = undefined;
    const { generation, count, lastSeq } = dropped;
    const pieces = `${count} ${count === 1 ? "piece" : "pieces"} of output`;
    const text = `\n[${pieces} dropped here: the agent sent more than the gateway could pass on]\n`;
    add(
      session,
      { type: "log", ...by(session, requestId), generation, seq: lastSeq, stream: "stderr", text },
      text.length,
    );
  };

  const drop = (session: AgentSession, frame: { requestId: string; generation: number; seq: number }) => {
    session.dropped ??= new Map();
    const before = session.dropped.get(frame.requestId);
    const count = (before?.generation === frame.generation ? before.count : 0) + 1;
    session.dropped.set(frame.requestId, { generation: frame.generation, count, lastSeq: frame.seq });
    onDropped();
  };

  return {
    report(session, frame, bytes) {
      const about = by(session, frame.requestId);
      switch (frame.type) {
        case "log": {
          const { generation, seq, stream, text } = frame;
          if (session.unsentLogBytes > mostUnsentLogBytes.session || logBytes > mostUnsentLogBytes.all) {
            drop(session, frame);
            return false;
          }
          reportDropped(session, frame.requestId);
          addLog(session, { type: "log", ...about, generation, seq, stream, text }, bytes);
          return true;
        }
        case "progress": {
          const { generation, message, percent } = frame;
          if (session.unsentLogBytes > mostUnsentLogBytes.session || logBytes > mostUnsentLogBytes.all)
            return false;
          addLog(session, { type: "progress", ...about, generation, message, percent: percent ?? null }, bytes);
          return true;
        }
        case "accepted":
          add(session, { type: "accepted", ...about, generation: frame.generation }, 0);
          return true;
        case "declined":
          add(session, { type: "declined", ...about, generation: frame.generation, reason: frame.reason }, bytes);
          return true;
        case "execute_result":
          reportDropped(session, frame.requestId);
          add(session, resultEvent(about, frame.generation ?? null, resultOf(frame)), bytes);
          return true;
      }
    },
    renewed(session, { requestId, generation }) {
      const event: ExecutionEvent = { type: "renewed", ...by(session, requestId), generation };
      if (renewing.has(keyOf(event))) return;
      renewing.add(keyOf(event));
      add(session, event, 0);
    },
    declined(session, { request_id, session_id, generation }, reason) {
      const about = { ...by(session, request_id), session_id };
      add(session, { type: "declined", ...about, generation, reason: reason.slice(0, 400) }, reason.length);
    },
    failed(session, { request_id, generation }, error) {
      add(session, resultEvent(by(session, request_id), generation, { status: "failed", error }), error.length);
    },
    waiting: batches.waiting,
    flush: batches.flush,
    stop: batches.stop,
  };
}

type About = { request_id: string; agent_id: string; session_id: string };

function by(session: AgentSession, request_id: string): About {
  return { request_id, agent_id: session.agent.agentId, session_id: session.id };
}

function resultEvent(about: About, generation: number | null, result: ExecutionResult): ExecutionEvent {
  return { type: "result", ...about, generation, result };
}

function keyOf({ agent_id, request_id, generation }: ExecutionEvent): string {
  return `${agent_id} ${request_id} ${generation}`;
}
