// One check of all ways to the node-facing listeners: a fresh canary along each, what it met is stored for all replicas, and
// what all of them have stored decides.

import type { EnvironmentProfile } from "@holdfast/contracts/node/protocol";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Sql } from "../../database/connect.ts";
import type { Authority } from "../authority.ts";
import { type CaTrust, decideTrust } from "./decide.ts";
import { probe } from "./probe.ts";
import { readKnown, storeTried, type Tried } from "./store.ts";
import { waysOf } from "./ways.ts";

/** Without a CA nothing is tried, and what is known counts. */
export async function checkIngressTrust(
  system: Sql,
  { authority, profile }: { authority: Authority | undefined; profile: EnvironmentProfile },
): Promise<CaTrust> {
  if (authority) await storeTried(system, await tryAll(authority, profile));
  return readIngressTrust(system);
}

export async function readIngressTrust(system: Sql): Promise<CaTrust> {
  const { ways, now } = await readKnown(system);
  return decideTrust(ways, now);
}

async function tryAll(authority: Authority, profile: EnvironmentProfile): Promise<Tried[]> {
  const canary = authority.issueCanary(uuidv7(), new Date());
  const ways = await waysOf(profile);
  return Promise.all(
    ways.map(async ({ endpoint, url, address }): Promise<Tried> => {
      if (address === null) {
        const why = `the name ${new URL(url).hostname} was not resolved`;
        return { endpoint, url, address: "", outcome: { state: "unreachable", why } };
      }
      return { endpoint, url, address, outcome: await probe({ url, address }, { authority, canary }) };
    }),
  );
}
