// The client that a terminal has now: who it is, what it was sent, and whether its input is forwarded.

import type { TerminalGrant } from "@holdfast/contracts/internal/endpoints";
import type { Client } from "./client.ts";
import { createInputGate, type InputGate } from "./input-gate.ts";

/** `start` is the shell's offset of the first byte that the client was sent. */
export type AttachedClient = {
  client: Client;
  grant: TerminalGrant;
  input: InputGate;
  ready: boolean;
  start: number;
  sent: number;
  /** How much of `sent` came over streams that are closed. */
  before: number;
  /** It was informed that the node is unresponsive, and not yet that it is back. */
  awaitsNode: boolean;
};

export function attachedClient(client: Client, grant: TerminalGrant): AttachedClient {
  const input = createInputGate(client.writer);
  return { client, grant, input, ready: false, start: 0, sent: 0, before: 0, awaitsNode: false };
}
