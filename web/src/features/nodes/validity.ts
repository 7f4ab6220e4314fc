// How far a certificate is through its life.

import { type CertificateStage, certificateStage } from "@holdfast/contracts/certificate-stage";
import type { NodeDetail } from "@holdfast/contracts/endpoints/nodes";
import type { State } from "../../design/StatusMark.tsx";

type Certificate = NonNullable<NodeDetail["certificate"]>;
export type Validity = {
  state: State;
  word: string;
  /** 0 to 1. */
  passed: number;
  renewalAt: number | null;
};

export function validityOf(certificate: Certificate, now: number): Validity {
  const from = Date.parse(certificate.not_before);
  const until = Date.parse(certificate.not_after);
  const share = (at: number) => Math.min(1, Math.max(0, (at - from) / (until - from)));
  const due = certificate.renewal_due_at === null ? null : Date.parse(certificate.renewal_due_at);
  const at = { passed: share(now), renewalAt: due === null ? null : share(due) };
  if (certificate.revoked_at) return { ...at, state: "failed", word: "Revoked" };
  if (now < from) return { ...at, state: "degraded", word: "Not valid yet" };
  return { ...at, ...marks[certificateStage({ notBefore: from, notAfter: until }, now)] };
}

const marks: Record<CertificateStage, Pick<Validity, "state" | "word">> = {
  current: { state: "ok", word: "Valid" },
  renewal_overdue: { state: "degraded", word: "Renewal overdue" },
  expired: { state: "failed", word: "Expired" },
};
