// Compares the open incidents of all nodes, and makes those with one cause part of one incident: one of the platform, and in
// each organization one with its own id and its own nodes. An idempotent function of what is stored. A fixed number of
// statements, however many nodes are affected.

import type { SharedAttribute } from "@holdfast/contracts/endpoints/incidents";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Sql, Tx } from "../../database/connect.ts";
import type { CommonCausePolicy } from "../policy.ts";
import { attributesOf } from "./attributes.ts";
import { type CommonCause, findCommonCauses, keyOf, type OpenCause } from "./find.ts";
import {
  type FleetRow,
  isDue,
  lockCommonCauses,
  type OpenRow,
  selectNodes,
  selectOpen,
  selectOutages,
  selectUncompared,
} from "./queries.ts";
import { type IdentifiedCause, type OrgCause, orgCausesOf } from "./share.ts";
import {
  closeOthers,
  type Link,
  linkIncidents,
  markCompared,
  writeOrgIncidents,
  writePlatformIncidents,
} from "./write.ts";

/** Returns the nodes whose incidents became, or are no longer, part of another one. */
export async function relateIncidents(system: Sql, policy: CommonCausePolicy): Promise<string[]> {
  return system.begin(async (tx) => {
    if (!(await isDue(tx))) return [];
    await lockCommonCauses(tx);
    return relate(tx, policy);
  });
}

async function relate(tx: Tx, policy: CommonCausePolicy): Promise<string[]> {
  // Before the nodes are read: one that changes afterwards is compared the next time.
  const uncompared = await selectUncompared(tx);
  const open = await selectOpen(tx);
  const outages = await selectOutages(tx, policy.returnAfterOutageMs);
  const nodes = await selectNodes(tx);
  const [clock] = await tx<{ now: Date }[]>`SELECT now() AS now`;
  const causes = findCommonCauses(nodes.map(relatedNode), {
    open: open.map(openCause),
    outages: outages.map(({ began_at, ended_at }) => ({
      from: began_at.getTime(),
      to: ended_at?.getTime() ?? null,
    })),
    ...{ policy, now: clock?.now.getTime() ?? Date.now() },
  });
  const platform = identified(causes, open);
  const ofOrgs = orgCausesOf(platform, nodes);
  await writePlatformIncidents(tx, platform, ofOrgs);
  const written = await writeOrgIncidents(tx, ofOrgs);
  const changed = await linkIncidents(tx, linksOf(nodes, ofOrgs, written));
  await closeOthers(tx, platform, ofOrgs);
  await markCompared(tx, uncomparable(uncompared, nodes));
  return changed;
}

function relatedNode(row: FleetRow) {
  const { id, reason, reason_since } = row;
  return { id, reason, since: reason_since?.getTime() ?? 0, attributes: attributesOf(row) };
}

function openCause({ reason, attribute, value, began_at, outage_began_at, outage_ended_at }: OpenRow): OpenCause {
  const outage = outage_began_at && { from: outage_began_at.getTime(), to: outage_ended_at?.getTime() ?? null };
  return { reason, attribute: attribute as SharedAttribute, value, since: began_at.getTime(), outage };
}

/** One that is open already keeps its id. */
function identified(causes: readonly CommonCause[], open: readonly OpenRow[]): IdentifiedCause[] {
  const ids = new Map(open.map((row) => [keyOf(openCause(row)), row.id]));
  return causes.map((cause) => ({ ...cause, id: ids.get(keyOf(cause)) ?? uuidv7() }));
}

/** Incidents that are over, and those of nodes that are not expected to report, such as quarantined ones. */
function uncomparable(ids: readonly string[], nodes: readonly FleetRow[]): string[] {
  const open = new Set(nodes.map(({ incident_id }) => incident_id));
  return ids.filter((id) => !open.has(id));
}

/** Of the incidents that were not compared yet, or become part of another one. */
function linksOf(
  nodes: readonly FleetRow[],
  causes: readonly OrgCause[],
  ids: ReadonlyMap<string, string>,
): Link[] {
  const partOf = new Map(
    causes.flatMap((cause) => cause.nodes.map(({ id }) => [id, ids.get(cause.key) ?? null] as const)),
  );
  return nodes.flatMap(({ id, incident_id, reason, reason_since, compared, part_of }): Link[] => {
    const wanted = partOf.get(id) ?? null;
    if (incident_id === null || (compared && wanted === part_of)) return [];
    return [{ incident_id, reason, reason_since, partOf: wanted }];
  });
}
