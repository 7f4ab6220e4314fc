// Whether a node's certificate has been renewed in time. The one rule for everything that reports a missed renewal: the
// agent's self-checks, the node's page, the log and the metric. No schema library here: agents carry this file.

export type CertificateStage = "current" | "renewal_overdue" | "expired";

/**
 * The part of its lifetime after which a renewal is overdue. It is due at half of the lifetime, a tenth earlier or later, and
 * retried every few minutes: past this part it has failed for hours, and a quarter of the lifetime is left to repair it.
 */
export const RENEWAL_OVERDUE_AT = 0.75;

/** Times in milliseconds, by the server's clock as far as it is known. */
export function certificateStage(
  { notBefore, notAfter }: { notBefore: number; notAfter: number },
  now: number,
): CertificateStage {
  if (now > notAfter) return "expired";
  return now > notBefore + (notAfter - notBefore) * RENEWAL_OVERDUE_AT ? "renewal_overdue" : "current";
}
