// Whether every KEK but the current one can be removed. Pure.

import type { SealedCount } from "./rewrap.ts";

export type ApiKeks = { hostname: string; kek_ids: readonly string[] };

/** Why a KEK is still needed; none: all but the current one can be removed from every process. */
export function obstaclesTo(
  current: string,
  { sealed, apis }: { sealed: readonly SealedCount[]; apis: readonly ApiKeks[] },
): string[] {
  const rows = sealed
    .filter(({ kek_id }) => kek_id !== current)
    .map(
      ({ kek_id, platform_keys, secrets }) =>
        `${platform_keys} platform keys and ${secrets} secrets are under the KEK "${kek_id}".`,
    );
  const processes = apis.flatMap(({ hostname, kek_ids: [seals] }) => {
    if (seals === current) return [];
    if (seals === undefined) return [`An api on ${hostname} does not report its KEKs: it runs an older version.`];
    return [`An api on ${hostname} seals with the KEK "${seals}": what it writes needs that.`];
  });
  return [...rows, ...processes];
}
