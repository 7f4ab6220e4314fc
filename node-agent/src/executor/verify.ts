// Decides whether an offered task may run at all, before anything of it is believed: signed with a
// key the server gave us, for this node, still in its time, of a type we have, with parameters of its
// form. Pure: keys, clock and types are parameters.

import { CLOCK_TOLERANCE_SECONDS } from "@holdfast/contracts/node-limits";
import type { TaskOffer } from "@holdfast/contracts/node-protocol";
import type { SignedTask } from "@holdfast/contracts/signed-task";
import type { CommonFailure } from "@holdfast/contracts/task-failures";
import { canonicalJson } from "@holdfast/kit/canonical-json";
import { type Verification, type VerifierKeyring, verifyDetached } from "@holdfast/kit/detached-jws";
import type { AnyTaskType } from "@holdfast/tasks/type";

export type Judge = {
  nodeId: string;
  verifiers: VerifierKeyring;
  /** Own clock, ms. */
  now: number;
  /** The server's clock minus ours, as far as it is certain; undefined before the first answer. */
  skewSeconds: number | undefined;
};

/** Undefined: nothing speaks against it. */
export type Refusal = CommonFailure | undefined;

/** Who made it, for whom, until when. Its type is looked at only after this. */
export function judgeOrigin(offer: TaskOffer, judge: Judge): Refusal {
  const verification = verificationOf(offer, judge);
  if (verification === "unknown_key") return "task_key_unknown";
  if (verification === "invalid") return "task_signature_invalid";
  if (offer.node_id !== undefined && offer.node_id !== judge.nodeId) return "task_wrong_node";
  return judgeTime(offer.expires_at, judge);
}

/**
 * Own time, corrected by what is known of the server's clock. The correction is at most a minute: a
 * clock that is further off judges nothing, or whoever moved it could bring old tasks back to life.
 */
export function judgeTime(
  expiresAt: string,
  { now, skewSeconds = 0 }: Pick<Judge, "now" | "skewSeconds">,
): Refusal {
  if (Math.abs(skewSeconds) > CLOCK_TOLERANCE_SECONDS) return "clock_skew";
  return now + skewSeconds * 1000 < Date.parse(expiresAt) ? undefined : "task_expired";
}

export type Acceptance = { refused: CommonFailure } | { params: unknown };

export function judgeContent(
  offer: TaskOffer,
  type: AnyTaskType | undefined,
  capabilities: readonly string[],
): Acceptance {
  if (type === undefined) return { refused: "task_type_unknown" };
  const capable = type.capabilities.length === 0 || type.capabilities.some((one) => capabilities.includes(one));
  if (!capable) return { refused: "capability_missing" };
  const params = type.params.safeParse(offer.params);
  return params.success ? { params: params.data } : { refused: "task_params_invalid" };
}

function verificationOf(offer: TaskOffer, judge: Judge): Verification {
  const signed: SignedTask = {
    task_id: offer.task_id,
    // A task of another node is distinguished from a changed one: its signature is good for that node.
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
