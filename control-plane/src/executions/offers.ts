// A request as its agent gets it: signed for agents that verify signatures, with its secret in clear text.

import { randomBytes } from "node:crypto";
import type { SignedExecution } from "@holdfast/contracts/execution/frames";
import type { ExecutionOffer } from "@holdfast/contracts/internal/executions";
import { openBox, sealBox } from "../mechanisms/sealing/envelope.ts";
import type { Keyring } from "../mechanisms/sealing/keyring.ts";
import type { OfferRow } from "./queries.ts";

export type SecretVault = {
  seal(requestId: string, secret: string): Buffer;
  open(requestId: string, sealed: Buffer): string;
};

/** The request id is bound to the box as associated data: a secret cannot be moved to another request. */
export async function openSecretVault(keyring: Keyring): Promise<SecretVault> {
  const key = await keyring.getOrCreate("execution-secrets", () => randomBytes(32));
  const context = (requestId: string) => `execution:${requestId}`;
  return {
    seal: (requestId, secret) => sealBox(key, context(requestId), Buffer.from(secret)),
    open: (requestId, sealed) => openBox(key, context(requestId), sealed).toString(),
  };
}

export type SignExecution = (execution: SignedExecution) => string;

type Signed = Pick<OfferRow, "request_id" | "org_id" | "user_id" | "kind" | "payload" | "timeout_ms">;

/** The agent verifies exactly this; it starts nothing after `deadlineAt`. */
export function signFor(
  sign: SignExecution,
  request: Signed,
  { agentId, deadlineAt }: { agentId: string; deadlineAt: Date },
): string {
  return sign({
    purpose: "execution",
    request_id: request.request_id,
    agent_id: agentId,
    organization_id: request.org_id,
    user_id: request.user_id,
    kind: request.kind,
    payload: request.payload,
    timeout_ms: request.timeout_ms,
    expires_at: deadlineAt.toISOString(),
  });
}

export function toOffer(
  row: Omit<OfferRow, "id" | "sealed_secret">,
  { sessionId, secret }: { sessionId: string; secret: string | null },
): ExecutionOffer {
  const deadline = row.deadline_at.toISOString();
  return {
    request_id: row.request_id,
    org_id: row.org_id,
    agent_id: row.agent_id,
    session_id: sessionId,
    generation: row.generation,
    user_id: row.user_id,
    kind: row.kind,
    payload: row.payload,
    timeout_ms: row.timeout_ms,
    deadline_at: deadline,
    signature: row.signature,
    expires_at: deadline,
    secret,
    correlation_id: row.correlation_id,
    journal_id: row.journal_id,
  };
}
