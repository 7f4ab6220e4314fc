// A connector as agents have it: checks stand in place of schemas (ADR 35).

import type { Check } from "@holdfast/kit/checks";

/** Whether an attempt whose outcome is unknown may be repeated, with the same idempotency key. */
export type Effect = "at-most-once" | "idempotent";

/** `what`: what the value of the secret has to be. Null: the action takes none. */
export type ActionSecret = { required: boolean; what: string } | null;

export type ConnectorFacts = {
  /** As in documents, and the name of the folder. */
  name: string;
  title: string;
  summary: string;
  /** It connects to other hosts: agents serve it only if the owner of their host lists it. */
  usesNetwork: boolean;
};

export type CheckedAction = {
  summary: string;
  effect: Effect;
  secret: ActionSecret;
  input: Check;
  output: Check;
};

export type CheckedConnector = ConnectorFacts & { actions: Readonly<Record<string, CheckedAction>> };
