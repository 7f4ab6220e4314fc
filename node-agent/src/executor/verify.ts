// Decides whether an offered task may run, before anything in it is trusted: it must be signed with a key of the server,
// for this node, not expired, of a known type, with valid parameters. Pure: keys, clock and types are parameters.

import { CLOCK_TOLERANCE_SECONDS } from "@holdfast/contracts/node/limits";
import type { TaskOffer } from "@holdfast/contracts/node/protocol";
import type { SignedTask } from "@holdfast/contracts/node/signed-task";
import type { CommonFailure } from "@holdfast/contracts/node/task-failures";
import { canonicalJson } from "@holdfast/kit/canonical-json";
import { type Verification, type VerifierKeyring, verifyDetached } from "@holdfast/kit/detached-jws";
import type { CheckedTaskType } from "@holdfast/tasks/checked-type";

export type Judge = {
  nodeId: string;
  verifiers: VerifierKeyring;
  /** This host's clock, in milliseconds. */
  now: number;
  /** The certain part of the server's clock minus this host's; undefined before the first response. */
  skewSeconds: number | undefined;
};

/** Undefined: the task may run. */
export type Refusal = CommonFailure | undefined;

/** Signature, node and expiry. The type is checked only after this. */
export function judgeOrigin(offer: TaskOffer, judge: Judge): Refusal {
  const verification = verificationOf(offer, judge);
  if (verification === "unknown_key") return "task_key_unknown";
  if (verification === "invalid") return "task_signature_invalid";
  if (offer.node_id !== undefined && offer.node_id !== judge.nodeId) return "task_wrong_node";
  return judgeTime(offer.expires_at, judge);
}

/**
 * This host's time, corrected by the known offset of the server's clock. The correction is at most a minute: otherwise
 * whoever changes a clock could make expired tasks run.
 */
export function judgeTime(
  expiresAt: string,
  { now, skewSeconds = 0 }: Pick<Judge, "now" | "skewSeconds">,
): Refusal {
  if (Math.abs(skewSeconds) > CLOCK_TOLERANCE_SECONDS) return "clock_skew";
  return now + skewSeconds * 1000 < Date.parse(expiresAt) ? undefined : "task_expired";
}

export type Acceptance = { refused: CommonFailure } | { params: unknown; secrets: Record<string, string> };

export function judgeContent(
  offer: TaskOffer,
  type: CheckedTaskType | undefined,
  capabilities: readonly string[],
): Acceptance {
  if (type === undefined) return { refused: "task_type_unknown" };
  const capable = type.capabilities.length === 0 || type.capabilities.some((one) => capabilities.includes(one));
  if (!capable) return { refused: "capability_missing" };
  const params = type.params.safeParse(offer.params);
  if (!params.success) return { refused: "task_params_invalid" };
  const secrets = secretsOf(offer, type);
  return secrets ? { params: params.data, secrets } : { refused: "task_secrets_missing" };
}

/** Those that the type declares, and no others; undefined: one is missing. */
function secretsOf(
  offer: TaskOffer,
  { secrets: names = [] }: CheckedTaskType,
): Record<string, string> | undefined {
  const secrets: Record<string, string> = {};
  for (const name of names) {
    const value: unknown = offer.secrets?.[name];
    if (typeof value !== "string" || value === "") return undefined;
    secrets[name] = value;
  }
  return secrets;
}

function verificationOf(offer: TaskOffer, judge: Judge): Verification {
  const signed: SignedTask = {
    task_id: offer.task_id,
    // Distinguishes a task of another node from a modified one: its signature is valid for that node.
    node_id: offer.node_id ?? judge.nodeId,
    task_type: offer.task_type,
    params: offer.params,
    expires_at: offer.expires_at,
  };
  try {
    return verifyDetached(judge.verifiers, canonicalJson(signed), offer.signature);
  } catch {
    return "invalid";
  }
}
