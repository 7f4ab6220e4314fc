// One node as a part of the fleet: the one state it is in, why, and since when. Pure; what needs attention is
// decided in nodes/presence/attention.ts, as for the node's own page.

import { isIPv4, isIPv6 } from "node:net";
import type { FleetState } from "@holdfast/contracts/endpoints/fleet";
import { RENEWAL_OVERDUE_AT } from "@holdfast/contracts/node/certificate-stage";
import type { Heartbeat } from "@holdfast/contracts/node/protocol";
import type { PictureNode } from "@holdfast/contracts/public/fleet-picture";
import { isSilence } from "@holdfast/contracts/reasons/node";
import type { Moment } from "../nodes/directory/describe.ts";
import { type Position, positionOf } from "../nodes/directory/state.ts";
import { attentionOf } from "../nodes/presence/attention.ts";
import type { FleetRow } from "./read.ts";

/** The part of a node's heartbeat that the fleet pages use. */
export type NodeReport = {
  version: string;
  system: string;
  hostname: string;
  address: string | null;
  block: string | null;
  capabilities: readonly string[];
  findings: readonly { reason: string; detail: string }[];
};

export type FleetNode = PictureNode & {
  id: string;
  status: FleetRow["status"];
  /** Codes of everything that needs attention. */
  reasons: readonly string[];
  report: NodeReport | undefined;
};

export function reportOf({ facts, findings }: Heartbeat): NodeReport {
  return {
    version: facts.agent_version,
    system: `${facts.os.flavour} ${facts.os.version} ${facts.arch}`.trim(),
    hostname: facts.hostname,
    address: facts.advertised_address,
    block: facts.advertised_address === null ? null : blockOf(facts.advertised_address),
    capabilities: facts.capabilities,
    findings,
  };
}

export function toFleetNode(
  row: FleetRow,
  known: {
    report: NodeReport | undefined;
    /** Only of a certificate that is late. */
    certificate: { notBefore: Date; notAfter: Date } | undefined;
    /** When each reason was first noticed here. */
    noticed: ReadonlyMap<string, number>;
  },
  moment: Moment,
): FleetNode {
  const { report, certificate } = known;
  const position = positionOf(row);
  const reasons = attentionOf(
    {
      position,
      reason: row.status_reason,
      createdAt: row.created_at,
      heartbeatAt: row.heartbeat_at ?? undefined,
      disconnection: row.disconnected_at ? { at: row.disconnected_at, why: "" } : undefined,
      clockSkewMs: row.clock_skew_ms ?? 0,
      certificate,
      findings: report?.findings ?? [],
      refusal: row.refused_at
        ? { at: row.refused_at, code: row.refused_code ?? "", correlationId: "" }
        : undefined,
    },
    moment,
  ).map(({ code }) => code);
  const state = stateOf(position, reasons);
  const reason = (state === "silent" ? reasons.find(isSilence) : reasons[0]) ?? null;
  return {
    id: row.id,
    name: row.name,
    status: row.status,
    state,
    reason,
    reasons,
    version: report?.version ?? null,
    block: report?.block ?? null,
    since: state === "fine" ? null : (beganAt(row, reason, certificate) ?? noticedAt(known.noticed, reason)),
    report,
  };
}

function noticedAt(noticed: ReadonlyMap<string, number>, reason: string | null): number | null {
  return (reason === null ? undefined : noticed.get(reason)) ?? null;
}

function stateOf(position: Position, reasons: readonly string[]): FleetState {
  if (position === "quarantined" || position === "revoked") return "fenced";
  if (reasons.some(isSilence)) return "silent";
  if (reasons.length > 0) return "troubled";
  if (position === "draining") return "draining";
  return position === "enrolling" ? "joining" : "fine";
}

/** From the stored times; undefined for the agent's own findings, which have none. */
function beganAt(
  row: FleetRow,
  reason: string | null,
  certificate: { notBefore: Date; notAfter: Date } | undefined,
): number | undefined {
  switch (reason) {
    case "heartbeat_stale":
      return row.heartbeat_at?.getTime();
    case "connection_lost":
      return row.disconnected_at?.getTime();
    case "never_heard":
      return row.created_at.getTime();
    case "cert_expired":
      return certificate?.notAfter.getTime();
    case "cert_renewal_overdue": {
      if (!certificate) return undefined;
      const from = certificate.notBefore.getTime();
      return from + (certificate.notAfter.getTime() - from) * RENEWAL_OVERDUE_AT;
    }
    case "node_quarantined":
    case "identity_revoked":
    case null:
      return row.status_changed_at.getTime();
    default:
      return undefined;
  }
}

/** What usually shares a switch: a /24 of IPv4, a /64 of IPv6. */
export function blockOf(address: string): string | null {
  if (isIPv4(address)) return `${address.split(".").slice(0, 3).join(".")}.0/24`;
  if (!isIPv6(address) || address.includes(".") || address.includes("%")) return null;
  const [head = "", tail] = address.split("::");
  const groups = head === "" ? [] : head.split(":");
  const after = tail === undefined || tail === "" ? [] : tail.split(":");
  const all = [...groups, ...Array.from({ length: 8 - groups.length - after.length }, () => "0"), ...after];
  const network = all.slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16));
  return `${network.join(":")}::/64`;
}
