// The observers of what agents send to this process.

import type { ApiContext } from "../api/context.ts";
import type { NodeApi } from "../node-api/route.ts";
import { createNetworkRecord } from "../nodes/directory/network-facts.ts";
import { createPublished } from "../profiles/published.ts";
import { createRecorder } from "./evidence/recorder.ts";
import { observeDiagnostics } from "./observers/diagnostics.ts";
import { observeForeign } from "./observers/foreign-certificates.ts";
import { observeHeartbeats } from "./observers/heartbeat.ts";
import { observeRefusals } from "./observers/refusals.ts";
import { observeResults } from "./observers/results.ts";
import { observeSetups } from "./observers/setup.ts";
import { observeTerminals } from "./observers/terminals.ts";
import { defaultPolicy as policy } from "./policy.ts";

export function observeNodes(nodeApi: NodeApi, { system, signals, log, nodes, terminals }: ApiContext): void {
  const recorder = createRecorder({ system, signals, log });
  const acceptedProfiles = createPublished(system);
  const { requiredAgentVersion: requiredVersion } = nodes;
  const network = createNetworkRecord(system);
  nodeApi.observers.push({
    heartbeat: observeHeartbeats(recorder),
    diagnostics: observeDiagnostics(recorder),
    refusal: observeRefusals(recorder),
    results: observeResults(recorder),
  });
  nodeApi.observers.push({
    heartbeat: observeSetups({ recorder, acceptedProfiles, network, requiredVersion, policy, log }),
    foreign: observeForeign({ recorder, system, log }),
  });
  terminals.outcomeListeners.push(observeTerminals(recorder));
}
