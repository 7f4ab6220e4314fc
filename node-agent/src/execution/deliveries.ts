// What is between this agent and the control plane: which link each delivery came by, and what is sent about it. It is answered by
// the same link as long as that is open, and by the newest one afterwards.

import type { AgentFrame, HeldExecution } from "@holdfast/contracts/execution/frames";
import { MOST_HELD_IN_FRAME } from "@holdfast/contracts/execution/limits";
import { type BackoffPolicy, backoffDelay } from "@holdfast/kit/backoff";
import type { Journal } from "../journal/journal.ts";
import type { Link } from "./link.ts";
import type { StepResult } from "./step.ts";

export type ExecutionReport = { task_id: string; generation: number; result: StepResult };
export type ExecutionJournal = Journal<ExecutionReport>;

export type Deliveries = {
  cameBy(requestId: string, link: Link): void;
  /** Nothing more is sent about it. */
  ended(requestId: string): void;
  /** False: there is no connection. */
  send(requestId: string, frame: AgentFrame): boolean;
  /** Of the journal. It is sent again until `ended`, because a frame may be lost although its connection lives on. */
  sendResult(requestId: string): void;
  resultOf(requestId: string): ExecutionReport | undefined;
  /** Sends the results that no open link has sent. */
  sendWaiting(): void;
  /** Whether something that came by this link has not ended. */
  isBusy(link: Link): boolean;
  holding(): HeldExecution[];
  renew(): void;
  /** Sends no result again. */
  stop(): void;
};

export type DeliveriesOptions = {
  journal: ExecutionJournal;
  newest(): Link | undefined;
  random: () => number;
  /** Pauses after which a result without an acknowledgement is sent again by an open link. */
  resend?: BackoffPolicy | undefined;
};

/** An acknowledgement takes milliseconds; but while the api is away, the gateway keeps every repetition in memory. */
const usualResend: BackoffPolicy = { firstMs: 10_000, maxMs: 300_000 };

export function createDeliveries(options: DeliveriesOptions): Deliveries {
  const { journal, newest, random, resend = usualResend } = options;
  const origins = new Map<string, Link>();
  const linkOf = (requestId: string): Link | undefined => {
    const origin = origins.get(requestId);
    return origin?.isReady() ? origin : newest();
  };
  const send = (requestId: string, frame: AgentFrame) => linkOf(requestId)?.send(frame) ?? false;
  /** Of results that were sent and are not acknowledged. */
  const resends = new Map<string, NodeJS.Timeout>();
  const forget = (requestId: string) => {
    clearTimeout(resends.get(requestId));
    resends.delete(requestId);
  };
  const transmit = ({ task_id: requestId, generation, result }: ExecutionReport, attempt = 0) => {
    forget(requestId);
    // Without a connection nothing is lost: the next one sends all that waits.
    if (!send(requestId, { type: "execute_result", requestId, generation, ...result })) return;
    const transmitAgain = () => {
      const report = resultOf(requestId);
      if (report) transmit(report, attempt + 1);
    };
    resends.set(requestId, setTimeout(transmitAgain, backoffDelay(resend, attempt, random())));
  };
  const resultOf = (requestId: string) => journal.unsent().find(({ task_id }) => task_id === requestId);
  const held = (): HeldExecution[] =>
    journal.held().map(({ task_id, generation }) => ({ requestId: task_id, generation }));

  return {
    cameBy: (requestId, link) => void origins.set(requestId, link),
    ended(requestId) {
      origins.delete(requestId);
      forget(requestId);
    },
    send,
    sendResult(requestId) {
      const report = resultOf(requestId);
      if (report) transmit(report);
    },
    resultOf,
    sendWaiting() {
      for (const report of journal.unsent()) if (!origins.get(report.task_id)?.isReady()) transmit(report);
    },
    isBusy: (link) => origins.values().some((origin) => origin === link),
    holding: () => held().slice(0, MOST_HELD_IN_FRAME),
    renew() {
      for (const [link, all] of Map.groupBy(held(), ({ requestId }) => linkOf(requestId))) {
        for (let at = 0; at < all.length; at += MOST_HELD_IN_FRAME) {
          link?.send({ type: "renew", holding: all.slice(at, at + MOST_HELD_IN_FRAME) });
        }
      }
    },
    stop() {
      for (const requestId of resends.keys()) forget(requestId);
    },
  };
}
