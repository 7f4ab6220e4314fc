// Keeps identity, trust, profile and address current: requests a new certificate when it is due, tries everything
// new before it is adopted, and recovers an identity that is no longer accepted. Shared by real agents, which store files, and simulated ones, which store nothing.

import type { HeldRecoveryToken, RecoveryToken } from "@holdfast/contracts/node/recovery";
import type { DiagnosticReason } from "@holdfast/contracts/reasons/node";
import type { Counters } from "../core/counters.ts";
import type { Finding } from "../diagnostics/self-checks.ts";
import type { CertificateFacts } from "../identity/identity-file.ts";
import { pendingOf, requestRenewal } from "../identity/renew.ts";
import type { Attempt, Candidates, Situation, Way } from "../identity/trials.ts";
import { createRecoveries, type Recoverable, type RecoveryHost } from "../recovery/recoveries.ts";
import type { LinkCalls } from "./calls.ts";
import type { Classified } from "./failures.ts";
import { createRenewals } from "./renewals.ts";
import { createTrialRuns } from "./trial-runs.ts";

/** What is in force, and the candidates. */
export type Keeper = {
  /** Throws a HostProblem while this host has no usable identity. */
  present(): Way;
  candidates(): Candidates;
  offer(candidates: Candidates): void;
  adopt(change: Partial<Way>): void;
};

export type UpkeepOptions = {
  keeper: Keeper & Recoverable;
  recovery: RecoveryHost;
  /** Addresses that may be tried; see `Situation`. */
  addresses: () => Pick<Situation, "joinedAt" | "fixedUrl">;
  connected: () => boolean;
  /** The server's clock minus this host's, its certain part; undefined while it is not known. */
  skewSeconds: () => number | undefined;
  /** One heartbeat with these settings. */
  request: (way: Way) => Promise<void>;
  /** With the settings in force. */
  renew: LinkCalls["renew"];
  onAdopted: (attempt: Attempt) => void;
  onRecovered: () => void;
  count: (name: keyof Counters) => void;
  record: (reason: DiagnosticReason, detail: string, correlationId?: string) => void;
  /** What the response to a renewal contained beside the certificate. */
  onTrustRefused: (refused: readonly string[]) => void;
  /** Of pauses before another attempt; in [0, 1). */
  random?: (() => number) | undefined;
};

export type Upkeep = {
  /** When the certificate is renewed; undefined while there is none. */
  renewalDueAt(): number | undefined;
  /** In force; undefined while there is none. */
  certificate(): CertificateFacts | undefined;
  /** After each heartbeat. */
  afterHeartbeat(): void;
  /** After each failure of the link. `serial`: of the certificate that was in force then. */
  afterFailure(failure: Classified, serial: string | undefined): void;
  /** From the response to a heartbeat. */
  learnToken(offered: RecoveryToken | undefined): void;
  /** The newest recovery token that is on disk. */
  recoveryToken(): HeldRecoveryToken | null;
  /** Offered settings that do not work, for the heartbeat. */
  findings(): Finding[];
  /** Aborts a recovery in progress. */
  stop(): void;
  /** Resolves when nothing is in progress. */
  settled(): Promise<void>;
};

export function createUpkeep(options: UpkeepOptions): Upkeep {
  const { keeper, skewSeconds, count, record, random = Math.random } = options;
  const clocks = () => {
    const now = Date.now();
    return { now, serverNow: now + (skewSeconds() ?? 0) * 1000 };
  };
  const certificate = () => {
    try {
      return keeper.present().identity.certificate;
    } catch {
      return undefined;
    }
  };

  const trials = createTrialRuns({
    situation: () => ({
      present: keeper.present(),
      candidates: keeper.candidates(),
      ...options.addresses(),
      connected: options.connected(),
      ...clocks(),
    }),
    request: options.request,
    adopt: keeper.adopt,
    onAdopted: (attempt) => {
      recoveries.afterAdoption();
      options.onAdopted(attempt);
    },
    onFailure: (failed) => {
      const { reason, detail } = findingOf(failed);
      record(reason, detail);
    },
  });

  const renewals = createRenewals({
    certificate,
    pending: () => {
      const offered = keeper.candidates().identity?.certificate;
      const tried = trials
        .failing()
        .find(({ attempt }) => attempt.change.identity?.certificate.serial === offered?.serial);
      return pendingOf(offered, { failures: tried?.count ?? 0, ...clocks() });
    },
    renew: async () => {
      const { identity, roots } = keeper.present();
      const renewed = await requestRenewal({ identity, roots, now: Date.now, ask: options.renew });
      keeper.offer({ identity: renewed.identity });
      options.onTrustRefused(renewed.refused);
      trials.consider();
    },
    ...{ skewSeconds, random },
    onFailure: (reason, detail) => {
      count("renewals_failed");
      record(reason, `renewing the certificate failed: ${detail}`);
    },
  });

  const triedAll = async () => {
    await renewals.settled();
    await trials.settled();
  };
  const recoveries = createRecoveries({
    ...{ host: options.recovery, identity: keeper, skewSeconds, trialsSettled: triedAll, count, record },
    ...{ onRecovered: options.onRecovered, random },
  });

  return {
    renewalDueAt: renewals.dueAt,
    certificate,
    afterHeartbeat() {
      recoveries.afterHeartbeat();
      trials.consider();
      renewals.consider();
    },
    afterFailure(failure, serial) {
      if (failure.reason !== "edge_rate_limited") trials.consider();
      recoveries.afterFailure(failure, serial);
    },
    learnToken: recoveries.learn,
    recoveryToken: recoveries.held,
    findings: () => trials.failing().slice(0, 1).map(findingOf),
    stop: recoveries.stop,
    settled: async () => {
      await recoveries.settled();
      await triedAll();
    },
  };
}

function findingOf({ attempt, reason, detail }: Finding & { attempt: Attempt }): Finding {
  return { reason: "identity_update_failed", detail: `${attempt.key}: ${reason}: ${detail}` };
}
