// The client that a terminal has now: who it is, what it was sent, and whether its input passes.

import type { TerminalGrant } from "@holdfast/contracts/service-endpoints";
import type { Client } from "./client.ts";
import { createInputGate, type InputGate } from "./input.ts";

/** `start` is the shell's offset that the first byte it was sent had. */
export type Present = {
  client: Client;
  grant: TerminalGrant;
  input: InputGate;
  ready: boolean;
  start: number;
  sent: number;
  /** How much of `sent` belongs to streams that are gone. */
  before: number;
  /** It was informed that the node is away, and not yet that it is back. */
  awaits: boolean;
};

export function arrivedClient(client: Client, grant: TerminalGrant): Present {
  const input = createInputGate(client.writer);
  return { client, grant, input, ready: false, start: 0, sent: 0, before: 0, awaits: false };
}
