// What canary certificates met at the addresses that nodes use, in one line. A rejection is a fault; an address that the
// server does not reach may still be reached by nodes, and is worth a warning.

import type { CanaryResult } from "../endpoints/platform.ts";

export type CanarySummary = { state: "ok" | "degraded" | "failed"; text: string };

export function summarizeCanaries(canaries: readonly CanaryResult[]): CanarySummary {
  const rejected = canaries.find(({ state }) => state === "rejected");
  if (rejected) {
    const text = `${placeOf(rejected)} rejects certificates of the CA, so none are issued: ${rejected.why}`;
    return { state: "failed", text };
  }
  const missed = canaries.find(
    ({ url }) => !canaries.some((other) => other.url === url && other.state === "accepted"),
  );
  if (missed)
    return { state: "degraded", text: `No canary certificate arrived at ${placeOf(missed)}: ${missed.why}` };
  if (canaries.length === 0) return { state: "degraded", text: "Not checked yet" };
  return { state: "ok", text: `Certificates of the CA are accepted at ${listOf(canaries.map(({ url }) => url))}` };
}

function placeOf({ url, address }: CanaryResult): string {
  return address === null || url.includes(address) ? url : `${url} (${address})`;
}

const listOf = (urls: readonly string[]) => [...new Set(urls)].join(" and ");
