// Where nodes are, as their agents report it. The record is brought up to date with the first report that differs; what an
// operator set stays.

import { isIPv6 } from "node:net";
import type { Sql } from "../../database/connect.ts";
import { createBatches } from "../../mechanisms/batches.ts";

export type NetworkFacts = {
  nodeId: string;
  /** Null: not known, so that the one on record stays. */
  address: string | null;
  provider: string | null;
  networkSide: string | null;
};

export type NetworkRecord = {
  /** Resolves with the address that was on record; null: none, or there is no such node. */
  report(facts: NetworkFacts): Promise<string | null>;
};

const GATHER_MS = 20;
const MOST_IN_ONE = 200;

export function createNetworkRecord(system: Sql): NetworkRecord {
  const batches = createBatches<NetworkFacts, string | null>({
    most: MOST_IN_ONE,
    atOnce: 1,
    restMs: GATHER_MS,
    keyOf: ({ nodeId }) => nodeId,
    concernsAll: () => true,
    run: (batch) => record(system, batch),
  });
  return { report: (facts) => batches.add(facts) };
}

type Row = {
  id: string;
  address: string | null;
  provider: string | null;
  network_side: string | null;
  provider_by_operator: boolean;
  network_side_by_operator: boolean;
};

/** Usually nothing differs, and nothing is locked or written. */
async function record(system: Sql, batch: readonly NetworkFacts[]): Promise<(string | null)[]> {
  const rows = await system<Row[]>`
    SELECT id, address, provider, network_side, provider_by_operator, network_side_by_operator FROM nodes
    WHERE id = ANY(${batch.map(({ nodeId }) => nodeId)}::uuid[])`;
  const known = new Map(rows.map((row) => [row.id, row]));
  const differing = batch
    .filter((facts) => {
      const row = known.get(facts.nodeId);
      return row !== undefined && differs(row, facts);
    })
    .toSorted((a, b) => (a.nodeId < b.nodeId ? -1 : 1));
  if (differing.length > 0) {
    await system`
      UPDATE nodes n SET
        address = coalesce(r.address, n.address),
        provider = CASE WHEN n.provider_by_operator THEN n.provider ELSE r.provider END,
        network_side = CASE WHEN n.network_side_by_operator THEN n.network_side ELSE r.network_side END
      FROM unnest(${differing.map(({ nodeId }) => nodeId)}::uuid[], ${differing.map(({ address }) => address)}::text[],
        ${differing.map(({ provider }) => provider)}::text[], ${differing.map(({ networkSide }) => networkSide)}::text[]
      ) AS r (id, address, provider, network_side)
      WHERE n.id = r.id`;
  }
  return batch.map(({ nodeId }) => known.get(nodeId)?.address ?? null);
}

function differs(row: Row, { address, provider, networkSide }: NetworkFacts): boolean {
  return (
    (address !== null && address !== row.address) ||
    (!row.provider_by_operator && provider !== row.provider) ||
    (!row.network_side_by_operator && networkSide !== row.network_side)
  );
}

/** Hosts change their IPv6 addresses within a network by themselves, for privacy: its /64 counts. */
export function isSamePlace(recorded: string, reported: string): boolean {
  return placeOf(recorded) === placeOf(reported);
}

function placeOf(address: string): string {
  if (!isIPv6(address)) return address;
  const [head = "", tail] = address.toLowerCase().split("::");
  const groups = (text: string) => (text === "" ? [] : text.split(":"));
  // An embedded IPv4 address stands for two groups, and is never among the first four of a global one.
  const missing = tail === undefined ? 0 : 8 - groups(head).length - groups(tail).length;
  const all = [...groups(head), ...Array<string>(Math.max(0, missing)).fill("0"), ...groups(tail ?? "")];
  return all
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":");
}
