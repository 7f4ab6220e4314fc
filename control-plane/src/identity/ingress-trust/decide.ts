// Whether everything between nodes and their listeners accepts certificates of the CA that signs them. Pure: of what all
// replicas have stored. One rejection anywhere is a mismatch; not to have reached an address is none.

/** One way to a listener: an address that nodes use, as it is resolved. Times are the last ones of each outcome. */
export type Way = {
  /** Of the profile, such as `node_api`. */
  endpoint: string;
  url: string;
  address: string;
  /** That a canary came through last. */
  ingress: string | null;
  acceptedAt: Date | null;
  rejectedAt: Date | null;
  unreachableAt: Date | null;
  /** In the words of the last rejection, and of the last failure to reach it. */
  rejection: string | null;
  problem: string | null;
};

export type Place = { url: string; address: string; why: string };

/** In place of a URL: the api itself does not accept what it signs, or has another CA than before. */
export const THIS_API = "this api";

export type CaTrust =
  | { state: "agrees" }
  | { state: "mismatch"; at: readonly Place[] }
  /** No canary arrived at the listener of the api. `at`: where it was tried. */
  | { state: "unknown"; at: readonly Place[] };

/** A way that nobody has tried for so long is not one any more: it was removed, or its name leads elsewhere. */
export const TRIED_WITHIN_MS = 5 * 60_000;
/**
 * Behind one address may be several ingresses, of which one rejects and the others accept. The rejection counts for as
 * many further checks as make it likely that this one was met again.
 */
export const REJECTION_HOLDS_MS = 2 * 60_000;
/** The endpoint that every node needs. Terminals have one of their own. */
export const NODE_API = "node_api";

export const wayStates = ["accepted", "rejected", "unreachable"] as const;
export type WayState = (typeof wayStates)[number];
export type JudgedWay = Way & { state: WayState; checkedAt: Date; why: string | null };

/** The ways that are in use, with what holds of each now. */
export function judgeWays(ways: readonly Way[], now: Date): JudgedWay[] {
  return ways.flatMap((way) => {
    const last = lastOf(way);
    if (now.getTime() - last > TRIED_WITHIN_MS) return [];
    const state = stateOf(way, last, now);
    const why = { accepted: null, rejected: way.rejection, unreachable: way.problem }[state];
    return [{ ...way, state, why, checkedAt: new Date(last) }];
  });
}

export function decideTrust(ways: readonly Way[], now: Date): CaTrust {
  const judged = judgeWays(ways, now);
  const rejecting = judged.filter(({ state }) => state === "rejected");
  if (rejecting.length > 0) return { state: "mismatch", at: rejecting.map(placeOf).sort(byPlace) };
  const needed = judged.filter(({ endpoint }) => endpoint === NODE_API);
  const missed = unreachable(needed);
  return needed.length > 0 && missed.length === 0 ? { state: "agrees" } : { state: "unknown", at: missed };
}

/** Of several addresses of one name, a node uses one that it reaches: it is missed only if none of them is reached. */
function unreachable(ways: readonly JudgedWay[]): Place[] {
  return [...Map.groupBy(ways, ({ url }) => url).values()]
    .filter((ofUrl) => ofUrl.every(({ state }) => state === "unreachable"))
    .flat()
    .map(placeOf)
    .sort(byPlace);
}

function stateOf({ rejectedAt, acceptedAt }: Way, last: number, now: Date): WayState {
  const rejected = rejectedAt?.getTime();
  const accepted = acceptedAt?.getTime();
  if (rejected !== undefined) {
    const isLater = accepted === undefined || rejected >= accepted;
    if (isLater || now.getTime() - rejected < REJECTION_HOLDS_MS) return "rejected";
  }
  return accepted === last ? "accepted" : "unreachable";
}

function lastOf({ acceptedAt, rejectedAt, unreachableAt }: Way): number {
  return Math.max(
    ...[acceptedAt, rejectedAt, unreachableAt].map((at) => at?.getTime() ?? Number.NEGATIVE_INFINITY),
  );
}

const placeOf = ({ url, address, why }: JudgedWay): Place => ({ url, address, why: why ?? "" });
const byPlace = (a: Place, b: Place) => (`${a.url} ${a.address}` < `${b.url} ${b.address}` ? -1 : 1);
