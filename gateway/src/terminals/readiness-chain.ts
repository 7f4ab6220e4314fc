// The readiness chain as a client sees it: when each step was reached, sent as it happens, and to clients that connect later.

import type { TerminalGrant } from "@holdfast/contracts/internal/endpoints";
import { type ReadinessStep, readinessSteps } from "@holdfast/contracts/terminal/frames";
import type { Client } from "./client.ts";

type Reader = { client: Client; grant: TerminalGrant };

export type ReadinessChain = {
  reach(step: ReadinessStep, reader: Reader | undefined): void;
  /** Sends every step that was reached before this client connected, in order. */
  sendReached(reader: Reader, connected: { stream: boolean; shell: boolean }): void;
};

export function createReadinessChain(): ReadinessChain {
  const reached = new Map<ReadinessStep, number>();
  return {
    reach(step, reader) {
      const at = Date.now();
      reached.set(step, at);
      if (reader) sendStatus(reader, step, at);
    },
    sendReached(reader, { stream, shell }) {
      reached.set("token_ready", Date.parse(reader.grant.asked_at));
      reached.set("browser_ws_ready", reader.client.connectedAt);
      if (!stream) reached.delete("node_stream_connected");
      if (!shell) reached.delete("pty_ready");
      for (const step of readinessSteps) {
        const at = reached.get(step);
        if (at !== undefined) sendStatus(reader, step, at);
      }
    },
  };
}

function sendStatus({ client, grant }: Reader, step: ReadinessStep, at: number): void {
  const { asked_at, correlation_id } = grant;
  const ms = Math.max(0, at - Date.parse(asked_at));
  client.send({ type: "status", step, at: new Date(at).toISOString(), ms, correlation_id });
}
