// Two agents that proved at the same time that they have the node's key.

import type { Twins } from "../../node-api/streams/uses.ts";
import type { Recorder } from "../evidence/recorder.ts";

export function observeTwins(recorder: Recorder, now: () => number = Date.now) {
  return ({ nodeId, instances: [one, other] }: Twins): void => {
    const detail = { one: one.instanceId, other: other.instanceId };
    const observedAt = new Date(now());
    recorder.observe(nodeId, [
      { ...{ nodeId, kind: "instances", value: "two_or_more", observer: "control_plane", observedAt }, detail },
    ]);
  };
}
