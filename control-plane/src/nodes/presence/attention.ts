// What about a node needs attention, and what to do. A pure function of what is stored and of the time, so that the page,
// the CLI and the alerts agree. Messages, places and owners come from the catalogue of reasons.

import type { Attention } from "@holdfast/contracts/endpoints/nodes";
import { type ErrorCode, errorCatalogue } from "@holdfast/contracts/errors";
import { certificateStage } from "@holdfast/contracts/node/certificate-stage";
import { CLOCK_TOLERANCE_SECONDS } from "@holdfast/contracts/node/limits";
import { presentReason } from "@holdfast/contracts/reasons/catalogue";
import { placeOf } from "@holdfast/contracts/reasons/hops";
import {
  isProblem,
  type NodeReasonCode,
  nodeReason,
  nodeReasons,
  ownerGroupOf,
} from "@holdfast/contracts/reasons/node";
import type { z } from "zod";
import type { Position } from "../directory/state.ts";
import { freshnessOf } from "./freshness.ts";

type AttentionItem = z.infer<typeof Attention>;

export type NodeCondition = {
  position: Position;
  reason: string | null;
  createdAt: Date;
  /** Undefined until the first heartbeat. */
  heartbeatAt: Date | undefined;
  /** Correlation id of the last heartbeat. */
  heartbeatId?: string | undefined;
  /** How the connection of the last heartbeat ended. */
  disconnection?: { at: Date; why: string } | undefined;
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

/** `message` replaces the catalogue's where more details are known. */
function itemOf(
  code: NodeReasonCode,
  { message, correlationId }: { message?: string; correlationId?: string | undefined },
): AttentionItem {
  const { at, signal, message: general, nextStep } = nodeReasons[code];
  return {
    ...{ code, ...presentReason(code), ...placeOf(at), signal, owner: ownerGroupOf(code) },
    ...{ message: message ?? general, next_step: nextStep, correlation_id: correlationId ?? null },
  };
}

function standingOf({ position, reason }: NodeCondition): AttentionItem | undefined {
  const because = reason ? ` Reason given: ${reason}` : "";
  switch (position) {
    case "revoked":
      return itemOf("identity_revoked", {
        message: `The node's identity is revoked: its certificates are no longer accepted.${because}`,
      });
    case "quarantined":
      return itemOf("node_quarantined", { message: `The node is quarantined: it gets no tasks.${because}` });
    default:
      return undefined;
  }
}

function heartbeatOf(
  { heartbeatAt, heartbeatId: correlationId, createdAt, disconnection }: NodeCondition,
  { now, staleAfterSeconds }: { now: Date; staleAfterSeconds: number },
): AttentionItem | undefined {
  const silentMs = now.getTime() - (heartbeatAt ?? createdAt).getTime();
  const disconnectedMs = disconnection && now.getTime() - disconnection.at.getTime();
  const freshness = freshnessOf({ ageMs: silentMs, disconnectedMs }, staleAfterSeconds);
  if (freshness === "online") return undefined;
  if (freshness === "in_future") {
    const what = heartbeatAt === undefined ? "the node's enrollment" : "the last heartbeat";
    const message = `The time of ${what} is ${duration(-silentMs)} in the future: a clock of the control plane was wrong. Whether the node is online is unknown.`;
    return itemOf("heartbeat_in_future", { message, correlationId });
  }
  if (heartbeatAt === undefined) {
    const message = `The node was enrolled ${duration(silentMs)} ago and has never sent a heartbeat.`;
    return itemOf("never_heard", { message });
  }
  if (disconnectedMs === undefined) {
    return itemOf("heartbeat_stale", {
      message: `The last heartbeat came ${duration(silentMs)} ago.`,
      correlationId,
    });
  }
  const how = endings[disconnection?.why ?? ""] ?? endings["connection_lost"];
  return itemOf("connection_lost", { message: `${how} ${duration(disconnectedMs)} ago.`, correlationId });
}

/** By how a connection ended; a time follows. */
const endings: Readonly<Record<string, string>> = {
  closed_by_agent: "The agent closed its connection",
  connection_lost: "The connection of the agent was lost",
  unresponsive: "The agent stopped responding, and its connection was closed",
  refused: "The server refused the agent's connection",
};

function certificateOf({ certificate }: NodeCondition, now: Date): AttentionItem | undefined {
  if (!certificate) return undefined;
  const validity = { notBefore: certificate.notBefore.getTime(), notAfter: certificate.notAfter.getTime() };
  const stage = certificateStage(validity, now.getTime());
  if (stage === "current") return undefined;
  const leftMs = validity.notAfter - now.getTime();
  return stage === "expired"
    ? itemOf("cert_expired", { message: `The node's certificate expired ${duration(-leftMs)} ago.` })
    : itemOf("cert_renewal_overdue", {
        message: `The node's certificate should have been renewed by now. It expires in ${duration(leftMs)}.`,
      });
}

/** For a refused certificate, until a heartbeat arrives with an accepted one. */
function refusalOf({ refusal, heartbeatAt }: NodeCondition, now: Date): AttentionItem | undefined {
  if (!refusal || (heartbeatAt && heartbeatAt >= refusal.at)) return undefined;
  const { code, correlationId, at } = refusal;
  const when = `${duration(Math.max(0, now.getTime() - at.getTime()))} ago`;
  const why = Object.hasOwn(errorCatalogue, code) ? errorCatalogue[code as ErrorCode].message : `${code}.`;
  const message = `The server rejected this node's certificate ${when}. ${why}`;
  return itemOf(code === "cert_expired" ? code : "auth_failed", { message, correlationId });
}

function clockOf({ clockSkewMs, findings }: NodeCondition): AttentionItem | undefined {
  if (Math.abs(clockSkewMs) <= CLOCK_TOLERANCE_SECONDS * 1000) return undefined;
  const direction = clockSkewMs > 0 ? "ahead of" : "behind";
  return itemOf("clock_skew", {
    message: `The node's clock is ${duration(Math.abs(clockSkewMs))} ${direction} the server's.`,
    correlationId: findings.find(({ reason }) => reason === "clock_skew")?.correlation_id,
  });
}

/** A newer agent may report a reason that this server's catalogue does not have. */
function findingOf({ reason, detail, correlation_id }: Finding): AttentionItem | undefined {
  const known = nodeReason(reason);
  if (!known) {
    return {
      ...{ code: reason, ...presentReason(reason), ...placeOf(null), signal: null, owner: ownerGroupOf(reason) },
      ...{ message: detail, next_step: "Run `holdfast agent diagnose` on the host." },
      correlation_id: correlation_id ?? null,
    };
  }
  const code = reason as NodeReasonCode;
  if (!isProblem(code)) return undefined;
  const message = detail === "" ? known.message : `${known.message} ${detail}`;
  return itemOf(code, { message, correlationId: correlation_id });
}

export function duration(ms: number): string {
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
