// Renews the certificate when it is due, beside the polls and never in their way. A failure is
// written down and tried again more slowly; once renewal is overdue (contracts' certificate-stage) it
// is also a finding that every heartbeat carries.

import type { DiagnosticReason } from "@holdfast/contracts/diagnostics";
import { backoffDelay } from "@holdfast/kit/backoff";
import type { CertificateFacts } from "../identity/identity-file.ts";
import { renewalDueAt } from "../identity/renew.ts";
import { HostProblem } from "../identity/state-directory.ts";
import { classify, failureOf, LinkFailure } from "./failures.ts";

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
  /** Gets a new one and puts it to use. */
  renew: () => Promise<CertificateFacts>;
  /** By the server's clock, as far as it is known: it decides when a certificate ends. */
  serverNow: () => number;
  onRenewed: (certificate: CertificateFacts) => void;
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
      options.onRenewed(await options.renew());
    } catch (error) {
      notBefore = performance.now() + backoffDelay(backoff, failures++, random());
      options.onFailure(...explain(error));
    }
  };

  return {
    dueAt,
    consider() {
      const due = dueAt();
      if (due === undefined || options.serverNow() < due || performance.now() < notBefore || underWay) return;
      underWay = attempt().finally(() => {
        underWay = undefined;
      });
    },
    settled: () => underWay ?? Promise.resolve(),
  };
}

function explain(error: unknown): [DiagnosticReason, string] {
  if (error instanceof HostProblem) return [error.reason, error.message];
  if (error instanceof LinkFailure) {
    const { reason, detail } = classify(failureOf(error));
    return [reason, detail];
  }
  return ["control_plane_unreachable", (error as Error).message];
}
