// Gets this node a new identity when the one in force is no longer accepted, beside the link. Every attempt is recorded
// with its outcome before the next one is decided (decide.ts). Shared by real agents, which store files, and simulated
// ones, which store nothing.

import type { HeldRecoveryToken, RecoveryCause, RecoveryToken } from "@holdfast/contracts/node/recovery";
import type { DiagnosticReason } from "@holdfast/contracts/reasons/node";
import { exhaustive } from "@holdfast/kit/exhaustive";
import type { Counters } from "../core/counters.ts";
import type { AgentFile } from "../identity/agent-file.ts";
import type { CertificateFacts } from "../identity/identity-file.ts";
import type { Way } from "../identity/trials.ts";
import type { Classified } from "../link/failures.ts";
import {
  decideRecovery,
  isAboutTrust,
  isFreshRejected,
  type LinkProblem,
  recoveryCause,
  suppressionMs,
  type TokenVerdict,
} from "./decide.ts";
import { endingOf } from "./endings.ts";
import { createPace } from "./pace.ts";
import type { RecoveryPath } from "./path.ts";
import { type RecoveryResult, requestRecovery, type Send, TokenExpired } from "./request.ts";
import { newestToken, type Recovered, type RecoveryStore, storable } from "./state.ts";
import { createTokens } from "./tokens.ts";

/** What a real and a simulated agent provide in different ways. */
export type RecoveryHost = {
  store: RecoveryStore;
  /** Throws a HostProblem when there is none that can be used. */
  path(): RecoveryPath;
  instanceId: string;
  bootId: string;
  /** From an operator. Used while the server has sent none. */
  givenToken?: string | undefined;
  send?: Send;
};

/** What a recovery needs of the agent's identity. */
export type Recoverable = {
  readonly nodeId: string;
  /** Throws a HostProblem while this host has no usable identity. */
  present(): Way;
  agent(): AgentFile;
  /** In force from the next connection on. */
  recover(recovered: Recovered): void;
  /** Retries what could not be written. Returns whether a restart would find it in the ordinary files. */
  storeRecovered(): boolean;
};

export type RecoveryOptions = {
  host: RecoveryHost;
  identity: Recoverable;
  /** The server's clock minus this host's; undefined: not known. */
  skewSeconds: () => number | undefined;
  /** Resolves when no other certificate, trust or address is being tried: what works makes a recovery unnecessary. */
  trialsSettled: () => Promise<void>;
  count: (name: keyof Counters) => void;
  record: (reason: DiagnosticReason, detail: string, correlationId?: string) => void;
  onRecovered: () => void;
  /** Monotonic. */
  now?: () => number;
  /** This host's clock. */
  clock?: () => number;
  random?: () => number;
};

export type Recoveries = {
  /** The newest token that is on disk, for the heartbeat. */
  held(): HeldRecoveryToken | null;
  /** From the response to a heartbeat. */
  learn(offered: RecoveryToken | undefined): void;
  /** `serial`: of the certificate that was in force when it failed. */
  afterFailure(failure: Classified, serial: string | undefined): void;
  /** The link works. */
  afterHeartbeat(): void;
  /** Something else that was tried has worked. */
  afterAdoption(): void;
  /** Aborts a request in progress; it is repeated with the same key. */
  stop(): void;
  /** Resolves when none is in progress. */
  settled(): Promise<void>;
};

type Problem = { failure: Classified; untrusted: number; serial: string | undefined };

export function createRecoveries(options: RecoveryOptions): Recoveries {
  const { host, identity, count, record } = options;
  const clock = options.clock ?? Date.now;
  const profile = () => identity.agent().profile.name;
  const tokens = createTokens({ store: host.store, profile, given: host.givenToken, clock });
  const pace = createPace({
    ...{ now: options.now ?? (() => performance.now()), random: options.random ?? Math.random },
    wake: () => consider(),
  });
  let problem: Problem | undefined;
  let reported: TokenVerdict | undefined;
  let settling: Promise<void> | undefined;
  let underWay: Promise<void> | undefined;
  let abort = new AbortController();

  const certificate = () => certificateOf(identity);
  const factsOf = ({ failure, untrusted }: Problem): LinkProblem => ({
    ...{ reason: failure.reason, code: failure.code, untrusted, certificate: certificate() },
    ...{ now: clock(), skewSeconds: options.skewSeconds(), sent: tokens.state().sent !== null },
  });
  const isOver = () => {
    problem = undefined;
    reported = undefined;
    pace.reset();
  };

  const consider = () => {
    // What has failed is no longer in force.
    if (problem && problem.serial !== certificate()?.serial) problem = undefined;
    if (!problem || underWay) return;
    const facts = factsOf(problem);
    const cause = recoveryCause(facts);
    if (cause === undefined) return;
    if (isFreshRejected(facts, tokens.state().unproved)) {
      const times = (tokens.state().rejected?.count ?? 0) + 1;
      tokens.keep({ unproved: null, rejected: { count: times, until: clock() + suppressionMs(times) } });
    }
    const { token, verdict } = tokens.choose();
    const decision = decideRecovery({
      ...{ token: verdict, pauseMs: pace.remainingMs(), rejected: tokens.state().rejected, now: clock() },
    });
    const { reason } = problem.failure;
    switch (decision.do) {
      case "report_no_token":
        if (reported !== verdict) record(reason, withoutToken(verdict, token));
        reported = verdict;
        return;
      case "wait":
        return pace.wakeIn(decision.ms);
      case "suppress":
        count("recovery_suppressed");
        record("recovery_enrollment_blocked", suppressed(reason, decision.ms));
        return pace.ended({ kind: "failed", retryAfterMs: undefined });
      case "attempt":
        if (token === undefined) return;
        underWay = attempt(token, cause, reason).finally(() => {
          underWay = undefined;
          consider();
        });
        return;
      default:
        return exhaustive(decision);
    }
  };

  const attempt = async (token: RecoveryToken, cause: RecoveryCause, link: DiagnosticReason) => {
    const { signal } = abort;
    const { instanceId, bootId, send } = host;
    count("recovery_attempts");
    try {
      const node = { id: identity.nodeId, profile: profile(), instanceId, bootId };
      const storedKey = () => tokens.keyFor(token);
      const request = { path: host.path(), token, storedKey, node, cause, send, now: clock, signal };
      adopt(await requestRecovery(request), cause);
    } catch (error) {
      count("recovery_failures");
      if (error instanceof TokenExpired) tokens.markExpired(token);
      if (signal.aborted || error instanceof TokenExpired) return;
      const ended = endingOf(error, link);
      record(ended.reason, ended.detail, ended.correlationId);
      if (ended.isAboutToken) tokens.markRefused(token);
      const another = tokens.choose().token?.token !== token.token;
      pace.ended(another ? { ...ended, kind: "failed" } : ended);
    }
  };

  const adopt = ({ recovered, token, url, correlationId }: RecoveryResult, cause: RecoveryCause) => {
    const { serial, notAfter } = recovered.identity.certificate;
    const before = tokens.state().token;
    // If this cannot be stored, the key of the request still is: after a restart the same response comes again.
    tokens.keep({
      ...{ token: newestToken(before, token) ?? before, sent: null },
      ...{ recovered: storable(recovered), unproved: serial },
    });
    identity.recover(recovered);
    settle();
    isOver();
    count("recovery_successes");
    const until = new Date(notAfter).toISOString();
    record(
      "process_alive",
      `recovered at ${url} (${cause}): new certificate, valid until ${until}`,
      correlationId,
    );
    options.onRecovered();
  };

  /** Moves a recovered identity to the ordinary files as soon as they can be written. */
  const settle = () => {
    if (tokens.state().recovered !== null && identity.storeRecovered()) tokens.keep({ recovered: null });
    else tokens.saveAgain();
  };

  return {
    held: tokens.held,
    learn: tokens.learn,
    afterFailure(failure, serial) {
      const untrusted = isAboutTrust(failure.reason) ? (problem?.untrusted ?? 0) + 1 : 0;
      problem = { failure, untrusted, serial };
      settling ??= options
        .trialsSettled()
        .then(consider)
        .finally(() => {
          settling = undefined;
        });
    },
    afterHeartbeat() {
      isOver();
      const { unproved, rejected } = tokens.state();
      if (unproved !== null || rejected !== null) tokens.keep({ unproved: null, rejected: null });
      settle();
    },
    afterAdoption() {
      problem = undefined;
    },
    stop() {
      isOver();
      abort.abort();
      abort = new AbortController();
    },
    settled: async () => {
      await settling;
      await underWay;
    },
  };
}

function certificateOf(identity: Recoverable): CertificateFacts | undefined {
  try {
    return identity.present().identity.certificate;
  } catch {
    return undefined;
  }
}

function withoutToken(verdict: TokenVerdict, token: RecoveryToken | undefined): string {
  const rest = "an operator must enroll this node again";
  switch (verdict) {
    case "other_profile":
      return `the recovery token is for another environment, ${token?.profile}; ${rest}`;
    case "expired":
      return `the recovery token expired at ${token?.expires_at}; ${rest}`;
    default:
      return `this node has no recovery token; ${rest}`;
  }
}

function suppressed(reason: DiagnosticReason, ms: number): string {
  const left = Math.ceil(ms / 60_000);
  return `the certificate of the last recovery was rejected too (${reason}); the next attempt is in ${left} min`;
}
