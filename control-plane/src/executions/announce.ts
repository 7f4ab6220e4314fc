// What gateways are told about requests, by the news line. A signal carries ids; each replica reads what they stand for and
// tells the gateways that follow it. What was lost on the way is announced again by a background job.

import type { ServiceNews } from "@holdfast/contracts/internal/endpoints";
import type { Log } from "@holdfast/service/log";
import type { Sql } from "../database/connect.ts";
import type { Signals } from "../mechanisms/signals.ts";
import { type Announced, selectLatelyRevoked, selectRequestIds, selectToAnnounce } from "./queries.ts";

export type Announcements = {
  /** What gateways still have to do; announced again in case a line was lost. */
  unfinished(): Promise<ServiceNews[]>;
  /** For a gateway that was not connected. */
  missed(): Promise<ServiceNews[]>;
  stop(): Promise<void>;
};

export function announceRequests(options: {
  sql: Sql;
  signals: Signals;
  publish(lines: readonly ServiceNews[]): void;
  log: Log;
}): Announcements {
  const { sql, signals, publish, log } = options;
  const reading = new Set<Promise<void>>();

  const soon = (work: () => Promise<ServiceNews[]>) => {
    const reads = work()
      .then(publish)
      .catch((error: unknown) => log.debug({ err: error }, "could not announce requests to gateways"))
      .finally(() => reading.delete(reads));
    reading.add(reads);
  };

  const unfinished = async () => linesOf(await selectToAnnounce(sql, null));
  const revoked = (ids: readonly string[]) =>
    ids.map((agent_id) => ({ type: "agent_revoked" as const, agent_id }));

  const unsubscribe = [
    signals.subscribe("agent_revoked", (ids) => publish(revoked(ids))),
    signals.subscribe("agent_work", (ids) => soon(async () => linesOf(await selectToAnnounce(sql, ids)))),
    signals.subscribe("execution_ended", (ids) =>
      soon(async () =>
        (await selectRequestIds(sql, ids)).map((request_id) => ({ type: "execution_ended", request_id })),
      ),
    ),
  ];

  return {
    unfinished,
    missed: async () => [...revoked(await selectLatelyRevoked(sql)), ...(await unfinished())],
    async stop() {
      for (const end of unsubscribe) end();
      await Promise.all(reading);
    },
  };
}

/** A stop goes to the session that the request was sent by, and to the newest one: the agent may have either. */
function linesOf(rows: readonly Announced[]): ServiceNews[] {
  const work = new Map<string, ServiceNews>();
  const stops: ServiceNews[] = [];
  for (const { agent_id, session_id, request_id, generation, cancel, sent_by } of rows) {
    if (sent_by === null) work.set(session_id, { type: "agent_work", agent_id, session_id });
    if (!cancel || sent_by === null) continue;
    for (const session of new Set([sent_by, session_id])) {
      stops.push({
        ...{ type: "stop_execution", agent_id, session_id: session, request_id, generation, reason: "cancelled" },
      });
    }
  }
  return [...work.values(), ...stops];
}
