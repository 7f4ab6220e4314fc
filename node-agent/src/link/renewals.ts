// Requests a new certificate when it is due, in parallel to the polls; trial-runs.ts decides whether it is adopted. A
// failure is recorded and retried with backoff; once renewal is overdue (contracts' certificate-stage) it
// is also a finding that every heartbeat carries.

import { createHash } from "node:crypto";
import type { DiagnosticReason } from "@holdfast/contracts/reasons/node";
import { backoffDelay } from "@holdfast/kit/backoff";
import type { CertificateFacts } from "../identity/identity-file.ts";
import { type Pending, renewalDue, renewalDueAt } from "../identity/renew.ts";
import { HostProblem } from "../identity/state-directory.ts";
import { classifyError, LinkFailure } from "./failures.ts";

export type Renewals = {
  /** Undefined while there is no certificate. */
  dueAt(): number | undefined;
  /** Starts a renewal if it is due; called after each heartbeat. */
  consider(): void;
  /** Resolves when none is in progress. */
  settled(): Promise<void>;
};

const backoff = { firstMs: 30_000, maxMs: 600_000 };

export function createRenewals(options: {
  /** The one in use; undefined while there is none. */
  certificate: () => CertificateFacts | undefined;
  /** The newest one, which is not in force yet. */
  pending: () => Pending;
  /** Requests a new one and stores it beside the present one. */
  renew: () => Promise<void>;
  /** The server's clock minus this host's, its certain part; undefined while it is not known. */
  skewSeconds: () => number | undefined;
  onFailure: (reason: DiagnosticReason, detail: string) => void;
  random?: () => number;
}): Renewals {
  const random = options.random ?? Math.random;
  let underWay: Promise<void> | undefined;
  /** Of this certificate's renewal. */
  let failed: { serial: string; times: number } | undefined;
  /** By the monotonic clock. */
  let notBefore = 0;

  const dueAt = () => {
    const certificate = options.certificate();
    return certificate && renewalDueAt(certificate, shareOf(certificate.serial));
  };

  const attempt = async () => {
    try {
      await options.renew();
    } catch (error) {
      const serial = options.certificate()?.serial ?? "";
      const times = failed?.serial === serial ? failed.times : 0;
      failed = { serial, times: times + 1 };
      notBefore = performance.now() + backoffDelay(backoff, times, random());
      options.onFailure(...explain(error));
    }
  };

  return {
    dueAt,
    consider() {
      const certificate = options.certificate();
      const due = dueAt();
      const skewSeconds = options.skewSeconds();
      if (!certificate || due === undefined || skewSeconds === undefined) return;
      if (underWay || performance.now() < notBefore) return;
      const facts = { certificate, dueAt: due, now: Date.now(), skewSeconds, pending: options.pending() };
      if (!renewalDue(facts)) return;
      underWay = attempt().finally(() => {
        underWay = undefined;
      });
    },
    settled: () => underWay ?? Promise.resolve(),
  };
}

/** In [0, 1), stable per certificate, so that a fleet does not renew at the same time. */
function shareOf(serial: string): number {
  return createHash("sha256").update(serial).digest().readUInt32BE(0) / 2 ** 32;
}

function explain(error: unknown): [DiagnosticReason, string] {
  if (!(error instanceof HostProblem || error instanceof LinkFailure)) {
    return ["control_plane_unreachable", (error as Error).message];
  }
  const { reason, detail } = classifyError(error);
  return [reason, detail];
}
