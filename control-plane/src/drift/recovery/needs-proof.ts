// After which causes a recovery has to be verified: those whose repair changes a node's identity, what it or the ingress
// trusts, its addresses, or ends a quarantine. A short outage, a full disk or a rate limit is over when it is no longer seen,
// and a terminal or an app has evidence of its own.

import { isReason, type Reason, reasons } from "@holdfast/contracts/reasons/catalogue";

export function needsProof(code: string): boolean {
  if (!isReason(code)) return false;
  const reason: Reason = reasons[code];
  if (reason.kind === "terminal" || reason.kind === "app" || reason.class === "terminal") return false;
  const { userState } = reason;
  const byPerson = userState === "operator_action_required" || userState === "security_action_required";
  // A rejected identity comes back with a new certificate, also without a person.
  return byPerson || reason.class === "rejection";
}
