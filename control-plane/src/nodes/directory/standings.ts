// A cache that every request of a node is checked against: the standing of each node that has sent a request to this
// process. Updated at once by the process that makes a change, by notification in the others, and read again by a
// background job in case a notification was lost.

import type { NodeStatus } from "@holdfast/contracts/node/protocol";
import type { Log } from "@holdfast/service/log";
import type { Sql } from "../../database/connect.ts";
import { createBatches } from "../../mechanisms/batches.ts";
import type { Signals } from "../../mechanisms/signals.ts";
import type { Moved, StatusRow } from "./state.ts";

export type Standing = {
  orgId: string;
  status: NodeStatus;
  reason: string | null;
  revokedAt: Date | null;
  revokedSerials: ReadonlySet<string>;
};

export type NodeDirectory = {
  /** Undefined: the node does not exist. */
  standing(nodeId: string): Promise<Standing | undefined>;
  /** Of a node that presents this certificate. */
  standingOf(presented: Presented): Promise<Standing | undefined>;
  /** The cached standing, if the node was looked up before. */
  known(nodeId: string): Standing | undefined;
  /** The cached standing, if it is not older than this certificate. */
  knownOf(presented: Presented): Standing | undefined;
  /** Calls the listener with each standing that is read of the node from now on. Returns an unsubscribe function. */
  onStanding(nodeId: string, listener: (standing: Standing) => void): () => void;
  /** Called after the commit of a change to a node. Notifies the other replicas too. */
  changed(moved: Pick<Moved, "row" | "revokedSerials">): void;
  /** Reads the changes since the last run, in case a notification was lost. */
  look(): Promise<void>;
  stop(): void;
};

type Presented = { nodeId: string; serial: string };

/**
 * With the identity of a node all its certificates are revoked: any other was issued since, by a replica whose notification
 * is on its way.
 */
const isOlderThan = (serial: string, { revokedAt, revokedSerials }: Standing) =>
  revokedAt !== null && !revokedSerials.has(serial);

export function isRevoked(standing: Standing, serial: string): boolean {
  return standing.revokedAt !== null || standing.revokedSerials.has(serial);
}

type Row = Omit<StatusRow, "name"> & { revoked_serials: string[] };
/** `read` orders concurrent reads: the one that began later is newer. */
type Entry = { standing: Standing; read: number };

const MOST_IN_ONE = 256;

export function createNodeDirectory(system: Sql, signals: Signals, log: Log): NodeDirectory {
  const entries = new Map<string, Entry>();
  const loading = new Map<string, Promise<Standing | undefined>>();
  const listeners = new Map<string, Set<(standing: Standing) => void>>();
  let reads = 0;
  let lookedAt: Date | undefined;

  const put = (nodeId: string, standing: Standing, read: number) => {
    const present = entries.get(nodeId);
    if (present && present.read > read) return;
    entries.set(nodeId, { standing, read });
    for (const listener of listeners.get(nodeId) ?? []) listener(standing);
  };

  const read = async (ids: readonly string[]) => {
    reads += 1;
    const turn = reads;
    for (const row of await selectStandings(system, ids)) put(row.id, toStanding(row), turn);
  };

  // After a start no node is cached, and all of them connect at once.
  const strangers = createBatches<string, Standing | undefined>({
    most: MOST_IN_ONE,
    atOnce: 1,
    keyOf: (nodeId) => nodeId,
    concernsAll: () => true,
    run: async (nodeIds) => {
      await read(nodeIds);
      return nodeIds.map((nodeId) => entries.get(nodeId)?.standing);
    },
  });
  const load = (nodeId: string) => {
    const present = loading.get(nodeId);
    if (present) return present;
    const loaded = strangers.add(nodeId).finally(() => loading.delete(nodeId));
    loading.set(nodeId, loaded);
    return loaded;
  };

  const readAgain = (ids: readonly string[]) => {
    const met = ids.filter((id) => entries.has(id) || loading.has(id));
    if (met.length === 0) return;
    read(met).catch((error: Error) =>
      log.debug({ err: error }, "could not read standings; retrying in the next run"),
    );
  };

  const look = async () => {
    if (entries.size === 0) return;
    const { at, ids } = await changedSince(system, lookedAt);
    const met = ids.filter((id) => entries.has(id));
    if (met.length > 0) await read(met);
    lookedAt = at;
  };

  const ends = [
    signals.subscribe("node_standing", readAgain),
    signals.onReconnected(() => readAgain([...entries.keys()])),
  ];

  const known = (nodeId: string) => entries.get(nodeId)?.standing;
  const knownOf = ({ nodeId, serial }: Presented) => {
    const standing = known(nodeId);
    return standing && isOlderThan(serial, standing) ? undefined : standing;
  };

  return {
    known,
    knownOf,
    standing: async (nodeId) => known(nodeId) ?? load(nodeId),
    async standingOf(presented) {
      const { nodeId } = presented;
      if (!entries.has(nodeId)) return load(nodeId);
      if (!knownOf(presented)) await read([nodeId]);
      return known(nodeId);
    },
    onStanding(nodeId, listener) {
      const all = listeners.get(nodeId) ?? new Set();
      listeners.set(nodeId, all);
      all.add(listener);
      // The set stays, for the node's next request.
      return () => void all.delete(listener);
    },
    changed({ row, revokedSerials }) {
      reads += 1;
      const before = entries.get(row.id)?.standing.revokedSerials;
      if (before) put(row.id, toStanding({ ...row, revoked_serials: [...before, ...revokedSerials] }), reads);
      signals.publish("node_standing", [row.id]);
    },
    look,
    stop() {
      for (const end of ends) end();
    },
  };
}

function toStanding(row: Row): Standing {
  return {
    orgId: row.org_id,
    status: row.status,
    reason: row.status_reason,
    revokedAt: row.revoked_at,
    revokedSerials: new Set(row.revoked_serials),
  };
}

/** Serials stay in the list for a day after they expire: this process's clock may differ from the database's. */
function selectStandings(system: Sql, ids: readonly string[]): Promise<Row[]> {
  return system<Row[]>`
    SELECT n.id, n.org_id, n.status, n.status_reason, n.revoked_at,
           ARRAY(SELECT c.serial FROM node_certificates c
                 WHERE c.node_id = n.id AND c.revoked_at IS NOT NULL AND c.not_after > now() - interval '1 day')
             AS revoked_serials
    FROM nodes n WHERE n.id = ANY(${ids as string[]}::uuid[])`;
}

/** A transaction stamps its change before it commits, and may take up to 30 s (its time limits) to do so. */
async function changedSince(system: Sql, since: Date | undefined): Promise<{ at: Date; ids: string[] }> {
  const [row] = await system<{ at: Date; ids: string[] }[]>`
    SELECT now() AS at, ARRAY(
      SELECT id FROM nodes WHERE status_changed_at > coalesce(${since ?? null}, now()) - interval '35 seconds'
    ) AS ids`;
  if (!row) throw new Error("a query without FROM returned no row");
  return row;
}
