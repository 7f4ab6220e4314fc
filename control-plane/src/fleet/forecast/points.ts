// What becomes of the identities of nodes while no certificates are issued. Pure: of how many nodes lose theirs from which
// time on, and until when they could return by themselves.

import type { FleetForecast, ForecastPoint } from "@holdfast/contracts/endpoints/fleet";

/** So many nodes are lost from this time on, and can return by themselves before the other. Both are places in a list of times. */
export type LostNodes = { from: number; recoverBefore: number; nodes: number };

/** A place after the last time means never, as far as it is forecast. */
export function pointsOf(times: readonly Date[], lost: readonly LostNodes[]): ForecastPoint[] {
  const changes = times.map(() => ({ lost: 0, recovering: 0 }));
  const add = (place: number, kind: "lost" | "recovering", nodes: number) => {
    const change = changes[place];
    if (change) change[kind] += nodes;
  };
  for (const { from, recoverBefore, nodes } of lost) {
    add(from, "lost", nodes);
    if (recoverBefore <= from) continue;
    add(from, "recovering", nodes);
    add(recoverBefore, "recovering", -nodes);
  }
  let [gone, recovering] = [0, 0];
  return changes.map((change, place) => {
    gone += change.lost;
    recovering += change.recovering;
    return { at: (times[place] as Date).toISOString(), lost: gone, recovering };
  });
}

export function sentenceOf({ nodes, until }: Pick<FleetForecast, "nodes" | "until">): string {
  const { at, lost, recovering } = until;
  const when = `If the control plane stays down until ${at.slice(0, 16).replace("T", " ")} UTC`;
  if (lost === 0) return `${when}, no node loses its identity.`;
  const lose = `${when}, ${lost} of ${nodes} ${nodes === 1 ? "node loses its" : lost === 1 ? "nodes loses its" : "nodes lose their"} identity`;
  if (recovering === 0)
    return `${lose}, and ${lost === 1 ? "does not recover" : "none of them recovers"} without an operator.`;
  if (recovering === lost)
    return `${lose}, and ${lost === 1 ? "recovers by itself" : "all of them recover by themselves"}.`;
  return `${lose}, of which ${recovering} ${recovering === 1 ? "recovers by itself" : "recover by themselves"}.`;
}
