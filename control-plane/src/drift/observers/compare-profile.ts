// The addresses that a node uses, against those that are published. Pure.

import type { AgentSetup } from "@holdfast/contracts/node/protocol";
import type { PublishedProfile } from "../../profiles/published.ts";
import type { NewObservation } from "../evidence/write.ts";

const compared = [
  { key: "api", field: "node_api" },
  { key: "terminal", field: "node_terminal" },
] as const;

/** `accepted`: newest first. An address that the newest profile does not name is not compared. */
export function compareWithProfile(
  { nodeId, urls, at }: { nodeId: string; urls: AgentSetup["urls"]; at: Date },
  accepted: readonly PublishedProfile[],
): NewObservation[] {
  const [newest] = accepted;
  if (!newest) return [];
  return compared.flatMap(({ key, field }): NewObservation[] => {
    const expected = originOf(newest.endpoints[field]);
    if (expected === null) return [];
    const reported = originOf(urls[field]);
    const matching = accepted.find(({ endpoints }) => originOf(endpoints[field]) === reported);
    const common = {
      nodeId,
      kind: "profile",
      key,
      observer: "control_plane",
      observedAt: at,
      steady: true,
    } as const;
    const addresses = { expected, reported };
    return matching
      ? [{ ...common, value: "matches", detail: { ...addresses, profile_version: matching.version } }]
      : [{ ...common, value: "differs", detail: { ...addresses, profile_version: newest.version } }];
  });
}

/** Whatever else is in a URL does not belong into evidence. Null: none. */
function originOf(url: string | null | undefined): string | null {
  return URL.parse(url ?? "")?.origin ?? null;
}
