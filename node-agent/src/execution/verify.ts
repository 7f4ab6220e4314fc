// Decides whether a dispatched step may run, before anything in it is trusted: it must be signed with a pinned key, for this
// agent and its organization, and not expired. Pure: keys and clock are parameters.

import type { SignedExecution } from "@holdfast/contracts/execution/frames";
import { canonicalJson } from "@holdfast/kit/canonical-json";
import { type Verification, type VerifierKeyring, verifyDetached } from "@holdfast/kit/detached-jws";
import type { SignedExecute } from "./frames.generated.ts";

export type Judge = {
  agentId: string;
  organizationId: string;
  keyring: VerifierKeyring;
  /** This host's clock, in milliseconds. */
  now: number;
};

/** `authentic`: it came from the control plane, for this agent. Undefined `refused`: it may run. */
export type Judgement = { authentic: boolean; refused: string | undefined };

export function judgeExecution(frame: SignedExecute, judge: Judge): Judgement {
  const forged = (refused: string): Judgement => ({ authentic: false, refused });
  if (judge.keyring.size === 0) return forged("this agent has no signing keys of the control plane");
  const verification = verificationOf(frame, judge.keyring);
  if (verification === "unknown_key") return forged("it is signed with a key that this agent does not know");
  if (verification === "invalid") return forged("its signature is not valid");
  if (frame.agentId.toLowerCase() !== judge.agentId) return forged(`it was signed for the agent ${frame.agentId}`);
  if (frame.organizationId.toLowerCase() !== judge.organizationId)
    return forged(`it was signed for the organization ${frame.organizationId}`);
  if (judge.now < Date.parse(frame.expiresAt)) return { authentic: true, refused: undefined };
  const clock = new Date(judge.now).toISOString();
  return { authentic: true, refused: `it expired at ${frame.expiresAt}; this host's clock says ${clock}` };
}

function verificationOf(frame: SignedExecute, keyring: VerifierKeyring): Verification {
  const signed: SignedExecution = {
    purpose: "execution",
    request_id: frame.requestId,
    agent_id: frame.agentId,
    organization_id: frame.organizationId,
    user_id: frame.userId,
    kind: frame.kind as SignedExecution["kind"],
    payload: frame.payload,
    timeout_ms: frame.timeoutMs,
    expires_at: frame.expiresAt,
  };
  try {
    return verifyDetached(keyring, canonicalJson(signed), frame.signature);
  } catch {
    // Nested too deep, or half of a character.
    return "invalid";
  }
}
