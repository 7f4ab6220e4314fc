// Why a lease waits, as of now: the plan that the next turn would make, read up to this lease.

import type { HostNotChosen } from "@holdfast/contracts/endpoints/leases";
import type { Queryable } from "../database/connect.ts";
import { selectTaken, selectViews } from "./hosts-view.ts";
import { type PlacementPolicy, planPlacements } from "./place.ts";
import { selectWaiting } from "./queries.ts";

const MOST = 1000;

export async function explainWaiting(
  db: Queryable,
  { orgId, leaseId }: { orgId: string; leaseId: string },
  policy: PlacementPolicy & { staleAfterSeconds: number },
): Promise<{ not_chosen: HostNotChosen[]; summary: string }> {
  const waiting = await selectWaiting(db, orgId, MOST);
  const hosts = await selectViews(db, orgId, policy.staleAfterSeconds);
  if (hosts.length === 0) return { not_chosen: [], summary: NO_HOSTS };
  const plan = planPlacements(waiting, hosts, policy, await selectTaken(db, orgId));
  const mine = plan.waiting.find(({ wanted }) => wanted.id === leaseId);
  if (!mine) return { not_chosen: [], summary: "A host can take it: it is placed within seconds." };
  const before = waiting.findIndex(({ id }) => id === leaseId);
  return { not_chosen: mine.notChosen, summary: waitingWords(mine.notChosen, before) };
}

const NO_HOSTS =
  "There is no VM host. Install QEMU on a node and set HOLDFAST_VM_HOST=on for its agent; the node then appears in `holdfast host list`.";

/** The reason of each host stands beside it. */
function waitingWords(notChosen: readonly HostNotChosen[], before: number): string {
  const hosts = notChosen.length === 1 ? "The only host cannot" : `None of ${notChosen.length} hosts can`;
  const queue = before > 0 ? ` ${before} older ${before === 1 ? "lease waits" : "leases wait"} as well.` : "";
  return `${hosts} take it now.${queue}`;
}
