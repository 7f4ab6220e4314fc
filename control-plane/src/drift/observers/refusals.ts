// Knocking: a request that was refused because of its certificate shows that the node is alive, and what is wrong with its
// identity. Only certificates of our own CA get this far, so the key was proved.

import type { NodeRefusal } from "../../nodes/identity/refusals.ts";
import type { Recorder } from "../evidence/recorder.ts";

/** A node that is locked out retries all the time; one observation in this time is enough. */
const EVERY_MS = 5_000;
const MOST_REMEMBERED = 10_000;

export function observeRefusals(recorder: Recorder, now: () => number = Date.now) {
  const lastAt = new Map<string, number>();
  return ({ nodeId, code, serial, correlationId }: NodeRefusal): void => {
    const key = `${nodeId} ${code}`;
    const at = now();
    if (at - (lastAt.get(key) ?? Number.NEGATIVE_INFINITY) < EVERY_MS) return;
    lastAt.delete(key);
    for (const oldest of lastAt.keys().take(lastAt.size >= MOST_REMEMBERED ? 1 : 0)) lastAt.delete(oldest);
    lastAt.set(key, at);
    recorder.observe(nodeId, [
      {
        ...{ nodeId, kind: "refusal", value: code, observer: "control_plane", observedAt: new Date(at) },
        ...{ detail: { endpoint: "node_facing", issuer: "ours", serial }, correlationId },
      },
    ]);
  };
}
