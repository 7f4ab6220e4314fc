// What about a node a person should look at, and what to do. A pure function of what is stored and
// of the time: the page, the CLI and the alarms say the same.

import { certificateStage } from "@holdfast/contracts/certificate-stage";
import { type DiagnosticReason, diagnosticReasons, placeOf } from "@holdfast/contracts/diagnostics";
import type { Attention } from "@holdfast/contracts/endpoints/nodes";
import { CLOCK_TOLERANCE_SECONDS } from "@holdfast/contracts/node-limits";
import type { z } from "zod";
import { freshnessOf } from "./freshness.ts";
import type { Position } from "./state.ts";

type AttentionItem = z.infer<typeof Attention>;

export type NodeCondition = {
  position: Position;
  reason: string | null;
  createdAt: Date;
  /** Undefined until the first heartbeat. */
  heartbeatAt: Date | undefined;
  /** Correlation id of the last heartbeat. */
  heartbeatId?: string | undefined;
  clockSkewMs: number;
  certificate: { notBefore: Date; notAfter: Date } | undefined;
  findings: readonly Finding[];
  /** The last request that was refused because of the node's certificate. */
  refusal?: Refusal | undefined;
};

type Finding = { reason: string; detail: string; correlation_id?: string | undefined };
export type Refusal = { at: Date; code: string; correlationId: string };

export function attentionOf(
  node: NodeCondition,
  facts: { now: Date; staleAfterSeconds: number },
): AttentionItem[] {
  if (node.position === "retired") return [];
  const found = [
    standingOf(node),
    ...(node.position === "revoked" ? [] : [certificateOf(node, facts.now), refusalOf(node, facts.now)]),
    heartbeatOf(node, facts),
    clockOf(node),
    ...node.findings.map(findingOf),
  ].filter((one) => one !== undefined);
  return found.filter((one, index) => found.findIndex((other) => other.code === one.code) === index);
}

const silence = { ...placeOf("heartbeat"), signal: "node_agent_heartbeat_stale", owner: "node" } as const;

function known(
  code: DiagnosticReason,
  correlationId: string | undefined,
): Omit<AttentionItem, "message" | "next_step"> {
  const { at, signal, owner } = diagnosticReasons[code];
  return { code, ...placeOf(at), signal, owner, correlation_id: correlationId ?? null };
}

function standingOf({ position, reason }: NodeCondition): AttentionItem | undefined {
  const because = reason ? ` Reason given: ${reason}` : "";
  if (position === "revoked") {
    return {
      ...known("identity_revoked", undefined),
      message: `The node's identity is revoked: its certificates are no longer accepted.${because}`,
      next_step:
        "To accept it again: make a token with `holdfast node token create --node <id>`, run `holdfast agent join` with it on the machine, then `holdfast node reactivate <id>`.",
    };
  }
  if (position === "quarantined") {
    return {
      ...known("node_quarantined", undefined),
      message: `The node is fenced: it gets no tasks.${because}`,
      next_step: "Find out why, then `holdfast node reactivate <id>`.",
    };
  }
  return undefined;
}

function heartbeatOf(
  { heartbeatAt, heartbeatId, createdAt }: NodeCondition,
  { now, staleAfterSeconds }: { now: Date; staleAfterSeconds: number },
): AttentionItem | undefined {
  const silentMs = now.getTime() - (heartbeatAt ?? createdAt).getTime();
  const freshness = freshnessOf(silentMs, staleAfterSeconds);
  if (freshness === "online") return undefined;
  if (freshness === "in_future") {
    const what = heartbeatAt === undefined ? "The node's enrollment" : "The last heartbeat";
    return {
      code: "heartbeat_in_future",
      ...placeOf("heartbeat"),
      correlation_id: heartbeatId ?? null,
      signal: "clock_skew",
      owner: "platform",
      message: `${what} is recorded ${duration(-silentMs)} in the future: a clock of the control plane was wrong. It does not show that the node is online.`,
      next_step:
        "Check the time on the hosts of the database and the api (`timedatectl`). An agent that runs reports again within 20 seconds; if none does, check host and agent.",
    };
  }
  if (heartbeatAt === undefined) {
    return {
      code: "never_heard",
      ...silence,
      correlation_id: null,
      message: `The node was enrolled ${duration(silentMs)} ago and has not been heard from.`,
      next_step:
        "Start the agent on the host: `holdfast agent run`; `holdfast agent diagnose` there says what it lacks.",
    };
  }
  return {
    code: "heartbeat_stale",
    ...silence,
    correlation_id: heartbeatId ?? null,
    message: `The last heartbeat came ${duration(silentMs)} ago.`,
    next_step: "Check that host and agent run; `holdfast agent diagnose` on the host says why it is silent.",
  };
}

function certificateOf({ certificate }: NodeCondition, now: Date): AttentionItem | undefined {
  if (!certificate) return undefined;
  const life = { notBefore: certificate.notBefore.getTime(), notAfter: certificate.notAfter.getTime() };
  const stage = certificateStage(life, now.getTime());
  if (stage === "current") return undefined;
  const leftMs = life.notAfter - now.getTime();
  if (stage === "expired") {
    return {
      ...known("cert_expired", undefined),
      message: `The node's certificate expired ${duration(-leftMs)} ago.`,
      next_step: diagnosticReasons.cert_expired.nextStep,
    };
  }
  return {
    ...known("cert_renewal_overdue", undefined),
    message: `The node's certificate should have been renewed by now; it expires in ${duration(leftMs)}.`,
    next_step: "Look at the agent's records below, or run `holdfast agent diagnose` on the host.",
  };
}

/** Of a certificate that is not accepted, as long as no heartbeat came with a better one. */
function refusalOf({ refusal, heartbeatAt }: NodeCondition, now: Date): AttentionItem | undefined {
  if (!refusal || (heartbeatAt && heartbeatAt >= refusal.at)) return undefined;
  const code = refusal.code === "cert_expired" ? "cert_expired" : "auth_failed";
  const when = `${duration(Math.max(0, now.getTime() - refusal.at.getTime()))} ago`;
  return {
    ...known(code, refusal.correlationId),
    message: `The server refused this node's certificate ${when}: ${refusalText[refusal.code] ?? refusal.code}.`,
    next_step: diagnosticReasons[code].nextStep,
  };
}

const refusalText: Partial<Record<string, string>> = {
  identity_revoked: "it was replaced when the node was enrolled again, or revoked",
  identity_retired: "the node is retired",
  cert_expired: "it has expired",
  certificate_not_yet_valid: "it is not valid yet",
};

function clockOf({ clockSkewMs, findings }: NodeCondition): AttentionItem | undefined {
  if (Math.abs(clockSkewMs) <= CLOCK_TOLERANCE_SECONDS * 1000) return undefined;
  const { nextStep } = diagnosticReasons.clock_skew;
  return {
    ...known("clock_skew", findings.find(({ reason }) => reason === "clock_skew")?.correlation_id),
    message: `The node's clock is ${duration(Math.abs(clockSkewMs))} ${clockSkewMs > 0 ? "ahead of" : "behind"} the server's.`,
    next_step: nextStep,
  };
}

/** A newer agent may report what this server has no words for. */
function findingOf({ reason, detail, correlation_id }: Finding): AttentionItem | undefined {
  if (!isKnown(reason)) {
    const nowhere = {
      ...placeOf(null),
      signal: null,
      owner: "node",
      correlation_id: correlation_id ?? null,
    } as const;
    return { code: reason, ...nowhere, message: detail, next_step: "Run `holdfast agent diagnose` on the host." };
  }
  const { owner, message, nextStep } = diagnosticReasons[reason];
  if (owner === "nobody") return undefined;
  return {
    ...known(reason, correlation_id),
    message: detail === "" ? message : `${message} ${detail}`,
    next_step: nextStep,
  };
}

function isKnown(reason: string): reason is DiagnosticReason {
  return Object.hasOwn(diagnosticReasons, reason);
}

function duration(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  const [amount, unit] =
    seconds < 120
      ? [seconds, "second"]
      : seconds < 7200
        ? [Math.floor(seconds / 60), "minute"]
        : seconds < 172_800
          ? [Math.floor(seconds / 3600), "hour"]
          : [Math.floor(seconds / 86_400), "day"];
  return `${amount} ${unit}${amount === 1 ? "" : "s"}`;
}
