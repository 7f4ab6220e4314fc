// Everything that can be wrong with a node: what its agent records, and what only the control plane notices or concludes.

import { cloneReasons } from "./node/clones.ts";
import { concludedReasons } from "./node/concluded.ts";
import { hostReasons } from "./node/host.ts";
import { identityReasons } from "./node/identity.ts";
import { linkReasons } from "./node/link.ts";
import { silenceReasons } from "./node/silence.ts";
import { workReasons } from "./node/work.ts";
import { type NodeOwner, nodeOwnerOf } from "./owners.ts";
import type { NodeReason } from "./vocabulary.ts";

/** An agent writes such a record before every decision to retry; the node's page and `holdfast agent diagnose` read them. */
export const diagnosticReasons = { ...hostReasons, ...linkReasons, ...identityReasons, ...workReasons };
export type DiagnosticReason = keyof typeof diagnosticReasons;
export const diagnosticReasonNames = Object.keys(diagnosticReasons) as [DiagnosticReason, ...DiagnosticReason[]];

export const nodeReasons = { ...silenceReasons, ...cloneReasons, ...concludedReasons, ...diagnosticReasons };
export type NodeReasonCode = keyof typeof nodeReasons;

/** Undefined for a code that only a newer agent knows. */
export function nodeReason(code: string): NodeReason | undefined {
  return Object.hasOwn(nodeReasons, code) ? nodeReasons[code as NodeReasonCode] : undefined;
}

/** What is said of such a code. */
export const unknownReason: Pick<NodeReason, "message" | "nextStep" | "at" | "signal"> = {
  message: "The agent reports a reason that this server does not know.",
  nextStep: "Run `holdfast agent diagnose` on the host.",
  at: null,
  signal: null,
};

/** A record of it reports a problem, not that all is well. */
export function isProblem(code: string): boolean {
  return nodeReason(code)?.class !== "none";
}

/** The identity of a node is not accepted, or is missing. */
export function isRejection(code: NodeReasonCode): boolean {
  return nodeReasons[code].class === "rejection";
}

/** The node does not report. */
export function isSilence(code: string): boolean {
  return nodeReason(code)?.class === "silence";
}

/** Only the server's next answer disproves it. */
export function standsUntilAnswered(code: string): boolean {
  return nodeReason(code)?.untilAnswered === true;
}

/** The public word for whoever repairs it. What only a newer agent knows is for the operator of its host. */
export function ownerGroupOf(code: string): NodeOwner {
  const reason = nodeReason(code);
  return reason ? (reason.ownerWord ?? nodeOwnerOf(reason.owner)) : "node";
}
