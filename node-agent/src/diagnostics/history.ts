// The host's history as the rest of the agent uses it: every record goes to the file and, while the server is reachable,
// soon to the server. It also remembers under which correlation id a reason was recorded last.

import type { DiagnosticRecord } from "@holdfast/contracts/node/protocol";
import type { DiagnosticReason } from "@holdfast/contracts/reasons/node";
import { createDiagnosticsUpload } from "../link/diagnostics-upload.ts";
import type { Diagnostics } from "./ring.ts";

export type History = {
  record: (reason: DiagnosticReason, detail: string, correlationId?: string) => void;
  readonly correlationIds: ReadonlyMap<DiagnosticReason, string>;
  connected(isConnected: boolean): void;
  upload(): void;
  stop(): void;
};

export function createHistory(options: {
  diagnostics: Pick<Diagnostics, "record" | "newerThan">;
  send: (records: DiagnosticRecord[]) => Promise<{ seq: number }>;
}): History {
  const { diagnostics } = options;
  const upload = createDiagnosticsUpload(options);
  const correlationIds = new Map<DiagnosticReason, string>();
  let isConnected = false;
  return {
    correlationIds,
    record(reason, detail, correlationId) {
      const id = diagnostics.record(reason, detail, correlationId);
      if (id !== null) correlationIds.set(reason, id);
      if (isConnected) upload.soon();
    },
    connected(now) {
      isConnected = now;
      // The record of the failure itself was one of a connected agent. What is pending is sent after the next heartbeat.
      if (!now) upload.stop();
    },
    upload: upload.now,
    stop: upload.stop,
  };
}
