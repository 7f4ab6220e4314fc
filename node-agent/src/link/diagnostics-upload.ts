// Delivers the host's diagnostic records once the server is reachable again, including those from the
// outage. The server reports which it has; nothing is sent twice.

import type { DiagnosticRecord } from "@holdfast/contracts/node/protocol";
import type { Diagnostics } from "../diagnostics/ring.ts";

const MOST_AT_ONCE = 64;
/** Per heartbeat: a long history follows with the next ones. */
const MOST_REQUESTS = 4;

/** Records made while the server is reachable are sent after this delay, together. */
const SOON_MS = 1_000;

export type DiagnosticsUpload = {
  now(): void;
  soon(): void;
  /** Nothing is sent until it is called for again. */
  stop(): void;
};

export function createDiagnosticsUpload(options: {
  diagnostics: Pick<Diagnostics, "newerThan">;
  send: (records: DiagnosticRecord[]) => Promise<{ seq: number }>;
}): DiagnosticsUpload {
  let delivered = -1;
  let underWay = false;
  let timer: NodeJS.Timeout | undefined;

  const upload = async () => {
    for (let request = 0; request < MOST_REQUESTS; request += 1) {
      const records = options.diagnostics.newerThan(delivered, MOST_AT_ONCE);
      const newest = records.at(-1);
      if (!newest) return;
      const { seq } = await options.send(records);
      // A server that lost records does not get them repeatedly; one that reports more is trusted.
      delivered = Math.max(seq, newest.seq);
    }
  };
  const now = () => {
    clearTimeout(timer);
    timer = undefined;
    if (underWay) return;
    underWay = true;
    upload()
      // The records stay where they are; the next heartbeat tries again.
      .catch(() => undefined)
      .finally(() => {
        underWay = false;
      });
  };
  return {
    now,
    soon() {
      timer ??= setTimeout(now, SOON_MS);
    },
    stop() {
      clearTimeout(timer);
      timer = undefined;
    },
  };
}
