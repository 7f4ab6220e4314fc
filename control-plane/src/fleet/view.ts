// All nodes of an organization in memory, while a client follows them. Heartbeats do not update this view: the database
// is read every few seconds, once for all clients, and only differences are published.

import { setTimeout as sleep } from "node:timers/promises";
import { byName } from "@holdfast/contracts/public/fleet-picture";
import type { Log } from "@holdfast/service/log";
import { type Sql, withOrg } from "../database/connect.ts";
import { digestOf, type OrgIncident, selectOpenCommonCauses } from "../drift/common-cause/of-organization.ts";
import type { CurrentVerdict } from "../drift/verdicts/current.ts";
import { selectVerdicts, verdictIn } from "../drift/verdicts/read.ts";
import type { Signals } from "../mechanisms/signals.ts";
import { type FleetChanges, keepHistory } from "./history.ts";
import { type FleetNode, type NodeReport, reportOf, toFleetNode } from "./node.ts";
import { type FleetRow, selectFleet, selectHeartbeats } from "./read.ts";

/** Keeps the share of time spent on reading low: the pause is this many times as long as a read takes. */
const REST = 20;
const LOOK_MS = 3_000;
/** A response may be this old; after a change by an operator the fleet is read at once. */
const FRESH_MS = 1_000;
/** Without a request for this long, the pages are closed. */
const FORGET_MS = 60_000;
/** Parsing this many heartbeats blocks the event loop for about 10 ms. */
const READ_IN_ONE = 500;

export type FleetView = {
  at: Date;
  version: string;
  /** Sorted by name. */
  nodes: readonly FleetNode[];
  /** Open common causes. */
  incidents: readonly OrgIncident[];
  /** Undefined: that version is not known here, or too old. */
  since(version: string): FleetChanges | undefined;
};

export type Fleets = {
  /** Reads if needed, on a connection of its own: do not await it within a transaction. */
  current(orgId: string): Promise<FleetView>;
  /** The view that `current` returned last. */
  known(orgId: string): FleetView;
  /** Calls back when an organization's view has changed. Returns an unsubscribe function. */
  onChanged(listener: (orgId: string) => void): () => void;
  /** Reads outdated views again, and forgets those that were not requested for a while. */
  refresh(): Promise<void>;
  stop(): Promise<void>;
};

type FleetsOptions = {
  app: Sql;
  signals: Signals;
  log: Log;
  staleAfterSeconds: () => number;
  /** Monotonic. */
  now?: () => number;
};

export function createFleets(options: FleetsOptions): Fleets {
  const watched = new Map<string, Watch>();
  const listeners = new Set<(orgId: string) => void>();
  const lookSoon = () => {
    for (const watch of watched.values()) watch.lookSoon();
  };
  const ends = [
    options.signals.subscribe("node_standing", lookSoon),
    options.signals.subscribe("verdict", lookSoon),
  ];
  return {
    async current(orgId) {
      let watch = watched.get(orgId);
      if (!watch) {
        watch = watchFleet(orgId, options, {
          onChanged: () => {
            for (const listener of listeners) listener(orgId);
          },
          onForgotten: () => watched.delete(orgId),
        });
        watched.set(orgId, watch);
      }
      return watch.current();
    },
    known(orgId) {
      const view = watched.get(orgId)?.known();
      if (!view) throw new Error("this fleet was not read before");
      return view;
    },
    onChanged(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async refresh() {
      await Promise.all([...watched.values()].map((watch) => watch.refresh()));
    },
    async stop() {
      for (const end of ends) end();
      await Promise.all([...watched.values()].map((watch) => watch.stop()));
    },
  };
}

type Watch = {
  current(): Promise<FleetView>;
  known(): FleetView | undefined;
  lookSoon(): void;
  refresh(): Promise<void>;
  stop(): Promise<void>;
};

function watchFleet(
  orgId: string,
  { app, log, staleAfterSeconds, now = () => performance.now() }: FleetsOptions,
  notify: { onChanged(): void; onForgotten(): void },
): Watch {
  const history = keepHistory();
  const reports = new Map<string, NodeReport & { instanceId: string | null }>();
  const verdicts = new Map<string, { of: number; verdict: Omit<CurrentVerdict, "pending"> | undefined }>();
  let view: FleetView | undefined;
  let lastDigest: string | undefined;
  let looking: Promise<FleetView> | undefined;
  let outdated = false;
  let lookedAt = 0;
  /** The quicker of the last two, so that one read on a stalled machine does not slow down the next ones. */
  let tookMs = 0;
  let lastTookMs = 0;
  let requestedAt = now();
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  /** Calls back for some at a time, so that other requests have their turn. */
  const inTurns = async (ids: readonly string[], some: (ids: readonly string[]) => Promise<void>) => {
    for (let from = 0; from < ids.length; from += READ_IN_ONE) {
      await some(ids.slice(from, from + READ_IN_ONE));
      await sleep(0);
    }
  };

  const read = () =>
    withOrg(app, orgId, async (tx) => {
      const rows = await selectFleet(tx);
      const known = new Map(rows.map((row) => [row.id, row]));
      const started = rows.filter((row) => hasStarted(row, reports.get(row.id))).map(({ id }) => id);
      await inTurns(started, async (ids) => {
        for (const { node_id, heartbeat } of await selectHeartbeats(tx, ids)) {
          reports.set(node_id, { ...reportOf(heartbeat), instanceId: known.get(node_id)?.instance_id ?? null });
        }
      });
      const classified = rows.filter(({ id, classified_at: at }) => at && verdicts.get(id)?.of !== at.getTime());
      await inTurns(
        classified.map(({ id }) => id),
        async (ids) => {
          for (const row of await selectVerdicts(tx, ids)) {
            const of = known.get(row.node_id)?.classified_at?.getTime() ?? 0;
            verdicts.set(row.node_id, { of, verdict: verdictIn(row) });
          }
        },
      );
      for (const kept of [reports, verdicts]) for (const id of kept.keys()) if (!known.has(id)) kept.delete(id);
      return { rows, incidents: await selectOpenCommonCauses(tx) };
    });

  const look = async (): Promise<FleetView> => {
    outdated = false;
    const startedAt = now();
    const { rows, incidents } = await read();
    const at = rows[0]?.read_at ?? new Date();
    const moment = { now: at, staleAfterSeconds: staleAfterSeconds() };
    const nodes = rows
      .map((row) =>
        toFleetNode(row, { report: reports.get(row.id), verdict: verdicts.get(row.id)?.verdict }, moment),
      )
      .sort(byName);
    const digest = digestOf(incidents);
    const changed = history.record(nodes) || digest !== lastDigest;
    lastDigest = digest;
    view = { at, version: history.version(), nodes: history.nodes(), incidents, since: history.since };
    lookedAt = now();
    tookMs = Math.min(lastTookMs, lookedAt - startedAt);
    lastTookMs = lookedAt - startedAt;
    if (changed) notify.onChanged();
    return view;
  };

  const lookOnce = (): Promise<FleetView> => {
    clearTimeout(timer);
    looking ??= look().finally(() => {
      looking = undefined;
      if (outdated) lookAfterRest();
    });
    return looking;
  };
  const restMs = () => Math.max(0, lookedAt + (tookMs * REST) / 2 - now());

  /** Merges several changes in quick succession into one read. */
  const lookAfterRest = () => {
    clearTimeout(timer);
    if (stopped) return;
    timer = setTimeout(() => {
      lookOnce().catch((error: Error) =>
        log.debug({ err: error }, "could not read the fleet; retrying at the next refresh"),
      );
    }, restMs());
    timer.unref();
  };

  return {
    async current() {
      requestedAt = now();
      if (looking) return looking;
      const old = now() - lookedAt > Math.max(FRESH_MS, tookMs * REST);
      if (view && (outdated ? restMs() > 0 : !old)) return view;
      return lookOnce();
    },
    known: () => view,
    lookSoon() {
      outdated = true;
      if (!looking) lookAfterRest();
    },
    async refresh() {
      if (now() - requestedAt > FORGET_MS) return notify.onForgotten();
      const due = now() - lookedAt >= Math.max(LOOK_MS, tookMs * REST);
      if (due && !looking) await lookOnce();
    },
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await looking?.catch(() => undefined);
    },
  };
}

/** What is used of a heartbeat stays the same while an agent runs. */
function hasStarted(row: FleetRow, known: { instanceId: string | null } | undefined): boolean {
  return row.heartbeat_at !== null && known?.instanceId !== row.instance_id;
}
