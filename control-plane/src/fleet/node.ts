// One node as a part of the fleet: the one state it is in, why, and since when. Pure. What is wrong with it was decided
// when its evidence was classified, as for the node's own page.

import { isIPv4, isIPv6 } from "node:net";
import type { FleetState } from "@holdfast/contracts/endpoints/fleet";
import type { Heartbeat } from "@holdfast/contracts/node/protocol";
import type { PictureNode } from "@holdfast/contracts/public/fleet-picture";
import { isSilence } from "@holdfast/contracts/reasons/node";
import type { Severity } from "@holdfast/contracts/reasons/vocabulary";
import { type CurrentVerdict, currentVerdict } from "../drift/verdicts/current.ts";
import type { StoredCause } from "../drift/verdicts/stored.ts";
import { type Position, positionOf } from "../nodes/directory/state.ts";
import { type Freshness, freshnessOf } from "../nodes/presence/freshness.ts";
import type { FleetRow } from "./read.ts";

/** The part of a node's heartbeat that the fleet pages use. */
export type NodeReport = {
  version: string;
  system: string;
  hostname: string;
  address: string | null;
  block: string | null;
  capabilities: readonly string[];
};

export type FleetNode = PictureNode & {
  id: string;
  status: FleetRow["status"];
  /** Worst first. */
  causes: readonly StoredCause[];
  /** Of the worst cause. */
  severity: Severity | null;
  report: NodeReport | undefined;
};

export function reportOf({ facts, setup }: Heartbeat): NodeReport {
  return {
    version: facts.agent_version,
    system: `${facts.os.flavour} ${facts.os.version} ${facts.arch}`.trim(),
    hostname: facts.hostname,
    address: facts.advertised_address,
    block: subnetOf({ facts, setup }),
    capabilities: facts.capabilities,
  };
}

export function toFleetNode(
  row: FleetRow,
  known: { report: NodeReport | undefined; verdict: Omit<CurrentVerdict, "pending"> | undefined },
  moment: { now: Date; staleAfterSeconds: number },
): FleetNode {
  const { report, verdict } = known;
  const freshness = freshnessIn(row, moment);
  const { causes } = currentVerdict(verdict, { online: freshness === "online" });
  const position = positionOf(row);
  const state = stateOf(position, { freshness, causes });
  const [worst] = causes;
  const silentAt = (row.disconnected_at ?? row.heartbeat_at)?.getTime() ?? null;
  return {
    ...{ id: row.id, name: row.name, status: row.status, state, causes, report },
    ...{ reason: worst?.spokenAs ?? null, severity: worst?.severity ?? null },
    ...{ version: report?.version ?? null, block: report?.block ?? null },
    since: state === "fine" ? null : beganAt(row, state, worst, silentAt),
  };
}

function freshnessIn(
  { heartbeat_at, disconnected_at }: FleetRow,
  { now, staleAfterSeconds }: { now: Date; staleAfterSeconds: number },
): Freshness {
  const since = (at: Date | null) => (at === null ? undefined : now.getTime() - at.getTime());
  return freshnessOf({ ageMs: since(heartbeat_at), disconnectedMs: since(disconnected_at) }, staleAfterSeconds);
}

function stateOf(
  position: Position,
  { freshness, causes }: { freshness: Freshness; causes: readonly StoredCause[] },
): FleetState {
  if (position === "quarantined" || position === "revoked") return "fenced";
  const unheard = freshness === "never" && causes.some(({ spokenAs }) => isSilence(spokenAs));
  if (unheard || (freshness !== "online" && freshness !== "never")) return "silent";
  if (causes.length > 0) return "troubled";
  if (position === "draining") return "draining";
  return position === "enrolling" ? "joining" : "fine";
}

function beganAt(
  row: FleetRow,
  state: FleetState,
  worst: StoredCause | undefined,
  silentAt: number | null,
): number | null {
  if (worst) return Date.parse(worst.since);
  return state === "silent" ? silentAt : row.status_changed_at.getTime();
}

/** By the address that the host connects from, as far as it knows. */
export function subnetOf({ facts, setup }: Pick<Heartbeat, "facts" | "setup">): string | null {
  const address = setup?.source_address ?? facts.advertised_address;
  return address === null ? null : blockOf(address);
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
