// The order in which somebody with little time reads nodes: by severity, then by how long it lasts. A page begins behind the
// place of the last node of the page before it, also if that node has left the list meanwhile.

import type { Endpoint } from "@holdfast/contracts/endpoint";
import { ApiError } from "@holdfast/contracts/errors";
import { severities } from "@holdfast/contracts/reasons/vocabulary";
import type { FleetNode } from "./node.ts";

/** Lower is worse. `since`: milliseconds, as far as known. */
type Place = { rank: number; since: number; id: string };
type Ranked = Pick<FleetNode, "id" | "severity" | "state" | "since">;

const UNKNOWN = Number.MAX_SAFE_INTEGER;

function placeOf({ id, severity, state, since }: Ranked): Place {
  // Offline without a cause yet is what most causes of it are.
  const assumed = severity ?? (state === "silent" ? "P2" : undefined);
  const rank = assumed === undefined ? severities.length : severities.indexOf(assumed);
  return { rank, since: assumed === undefined ? UNKNOWN : (since ?? UNKNOWN), id };
}

/** Of nodes that are alike, the newest first. */
function compare(a: Place, b: Place): number {
  return a.rank - b.rank || a.since - b.since || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0);
}

/** Those behind the place, if one is given. */
export function worstFirst<Node extends Ranked>(nodes: readonly Node[], behind: Place | undefined): Node[] {
  return nodes
    .map((node) => ({ node, place: placeOf(node) }))
    .filter(({ place }) => behind === undefined || compare(place, behind) > 0)
    .sort((a, b) => compare(a.place, b.place))
    .map(({ node }) => node);
}

export function cursorAt(endpoint: Endpoint, node: Ranked): string {
  const { rank, since, id } = placeOf(node);
  return Buffer.from(`${endpoint.name} worst ${rank} ${since} ${id}`).toString("base64url");
}

export function placeIn(endpoint: Endpoint, cursor: string | undefined): Place | undefined {
  if (cursor === undefined) return undefined;
  const [name, order, rank, since, id] = Buffer.from(cursor, "base64url").toString().split(" ");
  const place = { rank: Number(rank), since: Number(since), id: id ?? "" };
  const isPlace = Number.isInteger(place.rank) && Number.isInteger(place.since) && place.id !== "";
  if (name !== endpoint.name || order !== "worst" || !isPlace) throw new ApiError("invalid_cursor");
  return place;
}
