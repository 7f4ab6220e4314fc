// How much the outputs of a run may be together. The cursor contains them and is written with every step, so a run without this limit
// would slow down everybody's.

import type { NodeEvent } from "@holdfast/workflows/run/events";
import type { RunState } from "@holdfast/workflows/run/state";

const MOST_RUN_BYTES = 4 * 1024 * 1024;

/** Counts what it is given. A step whose output is too much for its run has failed, and is not repeated: it had its effect. */
export function outputLimit(state: RunState): (event: NodeEvent) => NodeEvent {
  let bytes = sizeOf(state);
  return (event) => {
    if (event.type !== "node_succeeded") return event;
    const size = sizeOf(event.output);
    if (bytes + size <= MOST_RUN_BYTES) {
      bytes += size;
      return event;
    }
    const { node, attempt } = event;
    const message = `The step succeeded, but its output of ${size} bytes is too large: a run keeps at most ${MOST_RUN_BYTES} bytes. Let its steps return less.`;
    return { type: "node_failed", node, attempt, failure: { code: "output_too_large", message } };
  };
}

const sizeOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value) ?? "");
