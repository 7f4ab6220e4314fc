// The receivers of all organizations in memory, for when the database cannot be asked.

import type { Sql } from "../../database/connect.ts";
import type { KnownReceiver } from "../outage/watch.ts";
import type { InstallationReceiver } from "./installation.ts";
import { type SealedReceiver, selectSealed } from "./queries.ts";
import type { ReceiverVault } from "./vault.ts";

/** Beyond them, the oldest count: an api cannot inform any number of organizations itself. */
const MOST = 1_000;

export type ReceiverCache = { all(): readonly KnownReceiver[]; refresh(): Promise<number> };

export function createReceiverCache(options: {
  system: Sql;
  vault: Pick<ReceiverVault, "open">;
  installation: readonly InstallationReceiver[];
}): ReceiverCache {
  const { system, vault, installation } = options;
  const own = installation.map(
    ({ kind, target }): KnownReceiver => ({ key: `installation ${kind}`, target, receiver: null }),
  );
  let known: KnownReceiver[] = [];
  const open = ({ id, org_id: orgId, kind, address, sealed }: SealedReceiver): KnownReceiver[] => {
    const receiver = { id, orgId };
    if (kind === "mail") return [{ key: id, receiver, target: { kind, to: address } }];
    return sealed ? [{ key: id, receiver, target: { kind, ...vault.open(id, sealed) } }] : [];
  };
  return {
    all: () => [...own, ...known],
    async refresh() {
      known = (await selectSealed(system, { most: MOST })).flatMap(open);
      return known.length;
    },
  };
}
