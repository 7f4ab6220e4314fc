// How much of a certificate's lifetime has passed, and its state.

import type { NodeDetail } from "@holdfast/contracts/endpoints/nodes";
import { type CertificateStage, certificateStage } from "@holdfast/contracts/node/certificate-stage";
import { certificateTitles } from "@holdfast/contracts/words/state-titles";
import { type Mark, markOf } from "../../design/values/marks.ts";

type Certificate = NonNullable<NodeDetail["certificate"]>;
export type Validity = Mark & {
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
  if (certificate.revoked_at) return { ...at, ...markOf(certificateTitles.revoked, "failed") };
  if (now < from) return { ...at, ...markOf(certificateTitles.not_yet_valid, "degraded") };
  return { ...at, ...marks[certificateStage({ notBefore: from, notAfter: until }, now)] };
}

const marks: Record<CertificateStage, Mark> = {
  current: markOf(certificateTitles.current, "ok"),
  renewal_overdue: markOf(certificateTitles.renewal_overdue, "degraded"),
  expired: markOf(certificateTitles.expired, "failed"),
};
