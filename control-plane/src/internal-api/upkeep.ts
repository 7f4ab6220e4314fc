// Upkeep of the internal side of an api process: its certificate, and the streams of the gateways that follow it.

import type { LogRequest } from "@holdfast/contracts/internal/logs";

export type InternalUpkeep = {
  /** Replaces the listener's certificate when half of its validity is over. */
  renewCertificate(now: Date): Promise<boolean>;
  /** Publishes nodes whose certificates are no longer accepted. */
  announceRevocations(): Promise<void>;
  /** Sends a sign of life to the gateways that follow this process. */
  keepAlive(): void;
  /** Passes requests for log lines on to the gateways that follow this process. */
  askForLogs(requests: readonly LogRequest[]): void;
};
