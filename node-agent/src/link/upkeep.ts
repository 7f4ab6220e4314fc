// Keeps identity, trust, profile and address current: requests a new certificate when it is due, and tries everything
// new before it is adopted. Shared by real agents, which store files, and simulated ones, which store nothing.

import type { DiagnosticReason } from "@holdfast/contracts/reasons/node";
import type { Finding } from "../diagnostics/self-checks.ts";
import { pendingOf, requestRenewal } from "../identity/renew.ts";
import type { Attempt, Candidates, Situation, Way } from "../identity/trials.ts";
import type { LinkCalls } from "./calls.ts";
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
  keeper: Keeper;
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
  onFailure: (reason: DiagnosticReason, detail: string) => void;
  onRenewalFailure: (reason: DiagnosticReason, detail: string) => void;
  /** What the response to a renewal contained beside the certificate. */
  onTrustRefused: (refused: readonly string[]) => void;
};

export type Upkeep = {
  /** When the certificate is renewed; undefined while there is none. */
  renewalDueAt(): number | undefined;
  /** After each heartbeat. */
  afterHeartbeat(): void;
  /** After each failure of the link that other settings might fix. */
  afterFailure(): void;
  /** Offered settings that do not work, for the heartbeat. */
  findings(): Finding[];
  /** Resolves when nothing is in progress. */
  settled(): Promise<void>;
};

export function createUpkeep(options: UpkeepOptions): Upkeep {
  const { keeper, skewSeconds } = options;
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
    onAdopted: options.onAdopted,
    onFailure: (failed) => {
      const { reason, detail } = findingOf(failed);
      options.onFailure(reason, detail);
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
    skewSeconds,
    onFailure: options.onRenewalFailure,
  });

  return {
    renewalDueAt: renewals.dueAt,
    afterHeartbeat() {
      trials.consider();
      renewals.consider();
    },
    afterFailure: trials.consider,
    findings: () => trials.failing().slice(0, 1).map(findingOf),
    settled: async () => {
      await renewals.settled();
      await trials.settled();
    },
  };
}

function findingOf({ attempt, reason, detail }: Finding & { attempt: Attempt }): Finding {
  return { reason: "identity_update_failed", detail: `${attempt.key}: ${reason}: ${detail}` };
}
