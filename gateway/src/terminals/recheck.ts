// Checks every stream with the api again after news may have been missed, and ends those that are no longer admitted.

import { setTimeout as wait } from "node:timers/promises";
import type { ApiError } from "@holdfast/contracts/errors";
import { backoffDelay } from "@holdfast/kit/backoff";
import { isTransient } from "./api-answers.ts";
import { retryPolicy } from "./opening.ts";
import type { Session } from "./session.ts";

const CHECKED_AT_ONCE = 16;

export type RecheckOptions = {
  sessions(): Iterable<Session>;
  /** Whether it is still open, and the gateway is not stopping. */
  isCurrent(session: Session): boolean;
  /** Rejects with ApiError where the stream is no longer admitted. */
  admit(stream: { sessionId: string; nodeId: string; serial: string; correlationId: string }): Promise<unknown>;
  onRefused(session: Session, error: ApiError): void;
};

/** The returned function starts a round, and ends the one before. */
export function createRecheck({ sessions, isCurrent, admit, onRefused }: RecheckOptions): () => Promise<void> {
  let newest = 0;

  /** Retries until the api has responded, or the stream has closed. */
  const recheck = async (session: Session, isNeeded: () => boolean) => {
    const { id: sessionId, nodeId } = session;
    for (let failures = 0; isNeeded() && isCurrent(session); failures += 1) {
      const serial = session.serial();
      if (serial === undefined) return;
      try {
        await admit({ sessionId, nodeId, serial, correlationId: sessionId });
        return;
      } catch (error) {
        if (!isTransient(error)) return onRefused(session, error as ApiError);
        await wait(backoffDelay(retryPolicy, failures), undefined, { ref: false });
      }
    }
  };

  return async () => {
    newest += 1;
    const round = newest;
    const left = [...sessions()];
    const work = async () => {
      for (let session = left.pop(); session; session = left.pop()) await recheck(session, () => round === newest);
    };
    await Promise.all(Array.from({ length: CHECKED_AT_ONCE }, work));
  };
}
