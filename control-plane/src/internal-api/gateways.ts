// SQL of gateways: which are online, and the URLs by which browsers, nodes and agents reach them.

import type { BodyOf } from "@holdfast/contracts/endpoint";
import type { announceGateway } from "@holdfast/contracts/internal/endpoints";
import type { Sql } from "../database/connect.ts";

/** Several announcements may be lost before a gateway counts as offline. */
const GONE_AFTER = "30 seconds";

export async function storeGateway(system: Sql, announced: BodyOf<typeof announceGateway>): Promise<void> {
  await system`
    INSERT INTO gateways (id, terminal_url, node_url, sessions, execution_url)
    VALUES (${announced.instance_id}, ${announced.terminal_url}, ${announced.node_url}, ${announced.sessions},
      ${announced.execution_url ?? null})
    ON CONFLICT (id) DO UPDATE SET terminal_url = excluded.terminal_url, node_url = excluded.node_url,
      sessions = excluded.sessions, execution_url = excluded.execution_url, last_seen_at = now()`;
}

/** It stops: clients and nodes are no longer sent to it. */
export async function markGatewayGone(system: Sql, id: string): Promise<void> {
  await system`UPDATE gateways SET last_seen_at = now() - ${GONE_AFTER}::interval WHERE id = ${id}`;
}

export type Gateway = { id: string; terminal_url: string };

/** The gateways that are online, newest first. Nodes get the URL of the newest. */
export function presentGateways(system: Sql): Promise<Gateway[]> {
  return system<Gateway[]>`
    SELECT id, terminal_url FROM gateways WHERE last_seen_at > now() - ${GONE_AFTER}::interval
    ORDER BY started_at DESC, id`;
}

export function selectGatewaysPresent(system: Sql): Promise<{ id: string; node_url: string }[]> {
  return system<{ id: string; node_url: string }[]>`
    SELECT id, node_url FROM gateways WHERE last_seen_at > now() - ${GONE_AFTER}::interval ORDER BY id`;
}

/** The URL of the newest gateway, so that nodes find a restarted one before its predecessor counts as offline. */
export async function presentNodeUrl(system: Sql): Promise<string | undefined> {
  const [row] = await system<{ node_url: string }[]>`
    SELECT node_url FROM gateways WHERE last_seen_at > now() - ${GONE_AFTER}::interval
    ORDER BY started_at DESC, id LIMIT 1`;
  return row?.node_url;
}

/** Where agents that run steps connect: the URL of the newest gateway that serves them. */
export async function presentExecutionUrl(system: Sql): Promise<string | undefined> {
  const [row] = await system<{ execution_url: string }[]>`
    SELECT execution_url FROM gateways
    WHERE last_seen_at > now() - ${GONE_AFTER}::interval AND execution_url IS NOT NULL
    ORDER BY started_at DESC, id LIMIT 1`;
  return row?.execution_url;
}

/** The URLs to which pages connect for terminals. */
export async function presentTerminalUrls(system: Sql): Promise<string[]> {
  const rows = await system<{ terminal_url: string }[]>`
    SELECT DISTINCT terminal_url FROM gateways WHERE last_seen_at > now() - ${GONE_AFTER}::interval
    ORDER BY terminal_url LIMIT 50`;
  return rows.map(({ terminal_url }) => terminal_url);
}
