// Asks for a new certificate when it is due, beside the polls and never in their way; whether it is put to use is
// adoption.ts's. A failure is written down and tried again more slowly; once renewal is overdue (contracts' certificate-stage) it
// is also a finding that every heartbeat carries.

import type { DiagnosticReason } from "@holdfast/contracts/reasons/node";
import { backoffDelay } from "@holdfast/kit/backoff";
import type { CertificateFacts } from "../identity/identity-file.ts";
import { type Pending, renewalDue, renewalDueAt } from "../identity/renew.ts";
import { HostProblem } from "../identity/state-directory.ts";
import { classifyError, LinkFailure } from "./failures.ts";

export type Renewals = {
  /** Undefined while there is no certificate. */
  dueAt(): number | undefined;
  /** Begins a renewal if it is due; after each heartbeat. */
  consider(): void;
  /** Resolves when none is under way. */
  settled(): Promise<void>;
};

const backoff = { firstMs: 30_000, maxMs: 600_000 };

export function createRenewals(options: {
  /** The one in use; undefined while there is none. */
  certificate: () => CertificateFacts | undefined;
  /** The one that was got last and is not in force yet. */
  pending: () => Pending;
  /** Gets a new one and keeps it beside the present one. */
  renew: () => Promise<void>;
  /** The server's clock minus this host's, as far as it is certain; undefined while it is not known. */
  skewSeconds: () => number | undefined;
  onFailure: (reason: DiagnosticReason, detail: string) => void;
  random?: () => number;
}): Renewals {
  const random = options.random ?? Math.random;
  let chosen: { serial: string; dueAt: number } | undefined;
  let underWay: Promise<void> | undefined;
  let failures = 0;
  /** By the steady clock. */
  let notBefore = 0;

  const dueAt = () => {
    const certificate = options.certificate();
    if (!certificate) return undefined;
    if (chosen?.serial !== certificate.serial) {
      chosen = { serial: certificate.serial, dueAt: renewalDueAt(certificate, random()) };
      failures = 0;
    }
    return chosen.dueAt;
  };

  const attempt = async () => {
    try {
      await options.renew();
    } catch (error) {
      notBefore = performance.now() + backoffDelay(backoff, failures++, random());
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

function explain(error: unknown): [DiagnosticReason, string] {
  if (!(error instanceof HostProblem || error instanceof LinkFailure)) {
    return ["control_plane_unreachable", (error as Error).message];
  }
  const { reason, detail } = classifyError(error);
  return [reason, detail];
}
