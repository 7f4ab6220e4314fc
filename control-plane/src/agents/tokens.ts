// The tokens of agents, `<organization>.<secret>`: a pairing token works once, the agent token until it is revoked.

import { uuidForm } from "@holdfast/kit/uuid";
import { hashSecret, isSecretOf, makeSecret } from "../mechanisms/secrets.ts";

export function makeAgentSecret(orgId: string): { token: string; hash: Buffer } {
  const { secret, hash } = makeSecret("agent");
  return { token: `${orgId}.${secret}`, hash };
}

/** Undefined: it does not have the form of such a token. */
export function readAgentSecret(token: string): { orgId: string; hash: Buffer } | undefined {
  const [orgId = "", secret = "", ...more] = token.split(".");
  if (!uuidForm.test(orgId) || !isSecretOf("agent", secret) || more.length > 0) return undefined;
  return { orgId: orgId.toLowerCase(), hash: hashSecret(secret) };
}
