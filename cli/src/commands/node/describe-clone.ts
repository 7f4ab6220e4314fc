// Two machines with one identity, in words.

import type { Explanation } from "@holdfast/contracts/endpoints/drift";
import { ago, table } from "../../output.ts";

type Clone = NonNullable<Explanation["clone"]>;
type Instance = Clone["instances"][number];

export function nameOfInstance({ holder, hostname, address }: Instance): string {
  return `holder ${holder} (${[hostname, address].filter(Boolean).join(", ") || "unknown host"})`;
}

export function describeClone({ instances, recommended, why }: Clone): string[] {
  return [
    table(instances, [
      {
        title: "holder",
        of: ({ holder }) => `${holder}${holder === recommended ? " (probably the original)" : ""}`,
      },
      { title: "host name", of: ({ hostname }) => hostname },
      { title: "address", of: ({ address }) => address },
      { title: "boot id", of: ({ boot_id }) => boot_id },
      { title: "instance id", of: ({ instance_id }) => instance_id },
      { title: "first seen", of: ({ first_seen_at }) => ago(first_seen_at) },
      { title: "last seen", of: ({ last_seen_at }) => ago(last_seen_at) },
    ]),
    ...why,
  ];
}
