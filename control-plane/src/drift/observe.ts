// The observers of what agents send to this process.

import type { ApiContext } from "../api/context.ts";
import type { NodeApi } from "../node-api/route.ts";
import { createRecorder } from "./evidence/recorder.ts";
import { observeDiagnostics } from "./observers/diagnostics.ts";
import { observeHeartbeats } from "./observers/heartbeat.ts";
import { observeTwins } from "./observers/instances.ts";
import { observeRefusals } from "./observers/refusals.ts";
import { observeResults } from "./observers/results.ts";

export function observeNodes(nodeApi: NodeApi, { system, signals, log }: ApiContext): void {
  const recorder = createRecorder({ system, signals, log });
  nodeApi.observers.push({
    heartbeat: observeHeartbeats(recorder),
    diagnostics: observeDiagnostics(recorder),
    refusal: observeRefusals(recorder),
    results: observeResults(recorder),
  });
  nodeApi.twinListeners.push(observeTwins(recorder));
}
