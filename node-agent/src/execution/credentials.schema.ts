// The forms of the credentials file and of the response to a pairing. The agent reads them by credentials.generated.ts,
// which is made from this. Fields that this version does not know are allowed: other systems write such a file, too.

import { AgentCapabilities } from "@holdfast/contracts/execution/frames";
import { AnyText, Id } from "@holdfast/contracts/fields";
import { z } from "zod";

const WebSocketUrl = AnyText.max(2000).regex(/^wss?:[/][/]./, "not a ws:// or wss:// URL");
/** `<organization id>.<secret>`. */
const AgentToken = AnyText.max(300).regex(
  /^[!-~]+[.][!-~]+$/,
  "not a token of the form <organization id>.<secret>",
);
/** Kept as it was signed, with whatever a newer server adds. */
const Keys = z.array(z.looseObject({ kid: z.string(), kty: z.string(), crv: z.string(), x: z.string() }));
const issued = { agentId: Id, agentToken: AgentToken, organizationId: Id, gatewayWsUrl: WebSocketUrl };

/** The keys that dispatches are verified with. */
export const PinnedKeySet = z.object({ version: z.int().positive(), keys: Keys });

export const CredentialsFile = z.object({
  ...issued,
  apiBaseUrl: AnyText.max(2000),
  name: AnyText.min(1).max(120),
  agentVersion: AnyText.max(64).optional(),
  capabilities: AgentCapabilities.optional(),
  /** Of the pairing. A file of another system has none. */
  keySet: PinnedKeySet.optional(),
  /** SHA-256 of the pairing token, hex: the same command again connects instead of pairing again. */
  pairedWith: z.string().optional(),
});

export const Paired = z.object({
  ...issued,
  keySet: z.object({ version: z.int().positive(), content: z.object({ keys: Keys }) }).optional(),
});
