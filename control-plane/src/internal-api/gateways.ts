// SQL of gateways: which are there, and where browsers and nodes reach them.

import type { BodyOf } from "@holdfast/contracts/endpoint";
import type { announceGateway } from "@holdfast/contracts/service-endpoints";
import type { Sql } from "../database/connect.ts";

/** Several announcements may be lost before a gateway counts as gone. */
const GONE_AFTER = "30 seconds";

export async function keepGateway(system: Sql, told: BodyOf<typeof announceGateway>): Promise<void> {
  await system`
    INSERT INTO gateways (id, terminal_url, node_url, sessions)
    VALUES (${told.instance_id}, ${told.terminal_url}, ${told.node_url}, ${told.sessions})
    ON CONFLICT (id) DO UPDATE SET terminal_url = excluded.terminal_url, node_url = excluded.node_url,
      sessions = excluded.sessions, last_seen_at = now()`;
}

export type Gateway = { id: string; terminal_url: string };

/** Those that are there, newest first: that is the one that nodes are told of. */
export function presentGateways(system: Sql): Promise<Gateway[]> {
  return system<Gateway[]>`
    SELECT id, terminal_url FROM gateways WHERE last_seen_at > now() - ${GONE_AFTER}::interval
    ORDER BY started_at DESC, id`;
}

/** The newest: one that was restarted is found at once, and not when the one before counts as gone. */
export async function presentNodeUrl(system: Sql): Promise<string | undefined> {
  const [row] = await system<{ node_url: string }[]>`
    SELECT node_url FROM gateways WHERE last_seen_at > now() - ${GONE_AFTER}::interval
    ORDER BY started_at DESC, id LIMIT 1`;
  return row?.node_url;
}

/** Where pages may find a terminal. */
export async function presentTerminalUrls(system: Sql): Promise<string[]> {
  const rows = await system<{ terminal_url: string }[]>`
    SELECT DISTINCT terminal_url FROM gateways WHERE last_seen_at > now() - ${GONE_AFTER}::interval
    ORDER BY terminal_url LIMIT 50`;
  return rows.map(({ terminal_url }) => terminal_url);
}
