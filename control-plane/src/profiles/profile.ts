// The environment profile: where nodes find this installation. Derived from the settings and from what
// the terminal gateway says of itself. A version is never changed, and a new one is written when the
// content differs from the newest. The newest is in force for all replicas.

import { isDeepStrictEqual } from "node:util";
import type { EnvironmentProfile } from "@holdfast/contracts/node/protocol";
import type { Queryable, Sql } from "../database/connect.ts";

export type ProfileContent = Omit<EnvironmentProfile, "name" | "version">;

export type ProfileSource = {
  current(): EnvironmentProfile;
  /** Another replica may have written a newer one. */
  refresh(): Promise<void>;
  /** Nodes find the terminal gateway there from now on. */
  terminalsAt(url: string): Promise<void>;
};

export const PROFILE_NAME = "default";
const TERMINALS = "node_terminal";

export function profileContent(from: {
  nodeApiUrl: string;
  publicUrl: string;
  /** Undefined: as the gateway says, and until then as it was. */
  terminalUrl: string | undefined;
  endpoints: Record<string, string>;
  resolve: Record<string, string[]>;
  caSha256: readonly string[];
}): ProfileContent {
  const { [TERMINALS]: _, ...others } = from.endpoints;
  const content = {
    // A setting may not take the name of an address that we know ourselves.
    endpoints: { ...others, node_api: from.nodeApiUrl, public: from.publicUrl },
    resolve: from.resolve,
    ca_sha256: [...from.caSha256],
  };
  return withTerminals(content, from.terminalUrl);
}

export async function openProfile(system: Sql, content: ProfileContent): Promise<ProfileSource> {
  // No setting names the gateway, so nodes keep using its last address.
  let profile = await putInForce(system, (present) => withTerminals(content, present?.endpoints[TERMINALS]));
  const refresh = async () => {
    profile = (await newest(system)) ?? profile;
  };
  return {
    current: () => profile,
    refresh,
    async terminalsAt(url) {
      profile = await putInForce(system, (present) => {
        const { name: _, version: __, ...before } = present ?? profile;
        return { ...before, endpoints: { ...before.endpoints, [TERMINALS]: url } };
      });
    },
  };
}

function withTerminals(content: ProfileContent, url: string | undefined): ProfileContent {
  if (url === undefined || content.endpoints[TERMINALS] !== undefined) return content;
  return { ...content, endpoints: { ...content.endpoints, [TERMINALS]: url } };
}

async function putInForce(
  system: Sql,
  make: (present: EnvironmentProfile | undefined) => ProfileContent,
): Promise<EnvironmentProfile> {
  for (;;) {
    const present = await newest(system);
    const content = make(present);
    if (present && isDeepStrictEqual(present, { ...present, ...content })) return present;
    const version = (present?.version ?? 0) + 1;
    // Of replicas that start together one writes it; the others look again.
    await system`
      INSERT INTO environment_profiles (name, version, content)
      VALUES (${PROFILE_NAME}, ${version}, ${system.json(content)}) ON CONFLICT DO NOTHING`;
  }
}

/** The node last received another address of the terminal gateway than the present one, or none. */
export async function hasOldTerminalAddress(system: Sql, nodeId: string): Promise<boolean> {
  const address = (alias: "received" | "present") =>
    system`${system(alias)}.content #>> ${["endpoints", TERMINALS]}::text[]`;
  const [row] = await system<{ old: boolean }[]>`
    SELECT ${address("received")} IS DISTINCT FROM ${address("present")} AS old
    FROM node_presence p
    JOIN LATERAL (
      SELECT content FROM environment_profiles WHERE name = ${PROFILE_NAME} ORDER BY version DESC LIMIT 1) present ON true
    LEFT JOIN environment_profiles received
      ON received.name = p.heartbeat #>> '{profile,name}' AND received.version::text = p.heartbeat #>> '{profile,version}'
    WHERE p.node_id = ${nodeId}`;
  return row?.old === true;
}

async function newest(db: Queryable): Promise<EnvironmentProfile | undefined> {
  const [row] = await db<{ version: number; content: ProfileContent }[]>`
    SELECT version, content FROM environment_profiles WHERE name = ${PROFILE_NAME} ORDER BY version DESC LIMIT 1`;
  return row && { name: PROFILE_NAME, version: row.version, ...row.content };
}
