// The environment profile: where nodes find this installation. Derived from the settings; a version
// is never changed, and a new one is written when the content differs from the newest. The newest
// is in force for all replicas.

import { isDeepStrictEqual } from "node:util";
import type { EnvironmentProfile } from "@holdfast/contracts/node-protocol";
import type { Log } from "@holdfast/service/log";
import type { Queryable, Sql } from "../database/connect.ts";
import { runPeriodically } from "../worker/periodic.ts";

export type ProfileContent = Omit<EnvironmentProfile, "name" | "version">;

export type ProfileSource = {
  current(): EnvironmentProfile;
  /** Another replica may have written a newer one. */
  refresh(): Promise<void>;
  stop(): Promise<void>;
};

const NAME = "default";
const REFRESH_SECONDS = 30;

export function profileContent(from: {
  nodeApiUrl: string;
  publicUrl: string;
  endpoints: Record<string, string>;
  resolve: Record<string, string[]>;
  caSha256: readonly string[];
}): ProfileContent {
  return {
    // A setting may not take the name of an address that we know ourselves.
    endpoints: { ...from.endpoints, node_api: from.nodeApiUrl, public: from.publicUrl },
    resolve: from.resolve,
    ca_sha256: [...from.caSha256],
  };
}

export async function openProfile(system: Sql, content: ProfileContent, log: Log): Promise<ProfileSource> {
  let profile = await putInForce(system, content);
  const refresh = async () => {
    profile = (await newest(system)) ?? profile;
  };
  const periodic = runPeriodically({ name: "profile", seconds: REFRESH_SECONDS, log, work: refresh });
  return { current: () => profile, refresh, stop: periodic.stop };
}

async function putInForce(system: Sql, content: ProfileContent): Promise<EnvironmentProfile> {
  for (;;) {
    const present = await newest(system);
    if (present && isDeepStrictEqual(present, { ...present, ...content })) return present;
    const version = (present?.version ?? 0) + 1;
    // Of replicas that start together one writes it; the others look again.
    await system`
      INSERT INTO environment_profiles (name, version, content)
      VALUES (${NAME}, ${version}, ${system.json(content)}) ON CONFLICT DO NOTHING`;
  }
}

async function newest(db: Queryable): Promise<EnvironmentProfile | undefined> {
  const [row] = await db<{ version: number; content: ProfileContent }[]>`
    SELECT version, content FROM environment_profiles WHERE name = ${NAME} ORDER BY version DESC LIMIT 1`;
  return row && { name: NAME, version: row.version, ...row.content };
}
