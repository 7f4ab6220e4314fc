// Idempotency keys on creates. The key is taken in the same transaction as the create: a failed
// create leaves the key unused, and a second request with the key waits for the first to end.
// Responses are stored sealed, because some contain a secret that is displayed once.

import { createHash, randomBytes } from "node:crypto";
import { ApiError } from "@holdfast/contracts/errors";
import type { Queryable } from "../database/connect.ts";
import { openBox, sealBox } from "./sealing/envelope.ts";
import type { Keyring } from "./sealing/keyring.ts";

export const KEPT_FOR = "24 hours";

export type AnswerVault = { seal(answer: unknown): Buffer; open(sealed: Buffer): unknown };

export async function createAnswerVault(keyring: Keyring): Promise<AnswerVault> {
  const key = await keyring.getOrCreate("idempotency-answers", () => randomBytes(32));
  return {
    seal: (answer) => sealBox(key, "answer", Buffer.from(JSON.stringify(answer))),
    open: (sealed) => JSON.parse(openBox(key, "answer", sealed).toString()),
  };
}

export type KeyedRequest = {
  orgId: string | null;
  actor: string;
  key: string;
  /** Method and route, by the endpoint's name. */
  endpoint: string;
  /** Checked by the endpoint's schemas, so that two spellings of one request are equal. */
  input: { params: unknown; query: unknown; body: unknown };
};

/** Runs the create once per key. `replayed`: the response is that of an earlier request. */
export async function createOnce<T>(
  tx: Queryable,
  vault: AnswerVault,
  request: KeyedRequest,
  create: () => Promise<T>,
): Promise<{ answer: T; replayed: boolean }> {
  const { params, query, body } = request.input;
  // The path too: the same body sent to another resource is another request.
  const requestHash = createHash("sha256")
    .update(JSON.stringify([params, query, body]))
    .digest();
  // Waits here while another transaction holds the same key.
  const taken = await tx`
    INSERT INTO idempotency_keys (org_id, actor, key, endpoint, request_hash)
    VALUES (${request.orgId}, ${request.actor}, ${request.key}, ${request.endpoint}, ${requestHash})
    ON CONFLICT DO NOTHING RETURNING key`;
  if (taken.length === 0)
    return { answer: (await earlierAnswer(tx, vault, request, requestHash)) as T, replayed: true };

  const answer = await create();
  await tx`
    UPDATE idempotency_keys SET sealed_answer = ${vault.seal(answer)}
    WHERE actor = ${request.actor} AND key = ${request.key} AND org_id IS NOT DISTINCT FROM ${request.orgId}`;
  return { answer, replayed: false };
}

async function earlierAnswer(
  tx: Queryable,
  vault: AnswerVault,
  request: KeyedRequest,
  requestHash: Buffer,
): Promise<unknown> {
  const [stored] = await tx<{ endpoint: string; request_hash: Buffer; sealed_answer: Buffer | null }[]>`
    SELECT endpoint, request_hash, sealed_answer FROM idempotency_keys
    WHERE actor = ${request.actor} AND key = ${request.key} AND org_id IS NOT DISTINCT FROM ${request.orgId}`;
  if (!stored?.sealed_answer || stored.endpoint !== request.endpoint || !stored.request_hash.equals(requestHash)) {
    throw new ApiError("idempotency_key_reused");
  }
  return vault.open(stored.sealed_answer);
}
