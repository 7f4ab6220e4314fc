// A preflight that the api runs itself: the same checks as `holdfast preflight`, with each hop stored as soon as it has an
// outcome. The host cannot be reached from here; the node's probes are tasks.

import type { Client } from "@holdfast/contracts/client";
import type { PreflightHopReport } from "@holdfast/contracts/preflight/report";
import type { ApiContext } from "../api/context.ts";
import { recordObservations } from "../drift/evidence/write.ts";
import { observationsOfPreflight } from "./observe.ts";
import { finish, interrupt, updateHops } from "./queries.ts";
import { runPreflight } from "./run/run.ts";

type Run = {
  id: string;
  client: Client;
  nodeId: string;
  allocationId: string | null;
  correlationId: string;
  apiUrl: string;
};

/** Held by the probe of `tasks/wait`. */
const HOLD_SECONDS = 1;
const nothingExpected = {
  ...{ node_runtime_api_url: null, node_runtime_resolve_address: null },
  ...{ node_terminal_url: null, node_terminal_resolve_address: null },
};

/** Never rejects. */
export async function runHere({ system, signals, log }: ApiContext, run: Run): Promise<void> {
  const { id, correlationId } = run;
  /** The last report of each, in the order in which they were first made. */
  const hops = new Map<string, PreflightHopReport>();
  let stored = Promise.resolve();
  const store = (work: () => Promise<void>) => {
    stored = stored.then(work).then(
      () => signals.publish("preflight", [id]),
      (error: unknown) => log.warn({ err: error, correlation_id: correlationId }, "a preflight was not stored"),
    );
  };
  try {
    const { client, nodeId, allocationId, apiUrl } = run;
    const means = { client, nodeId, allocationId, correlationId, apiUrl, vantage: "control_plane" } as const;
    const { report } = await runPreflight(
      { ...means, expected: nothingExpected, holdSeconds: HOLD_SECONDS },
      {
        all: false,
        onHop: (hop) => {
          hops.set(hop.hop, hop);
          const sofar = [...hops.values()];
          store(() => updateHops(system, id, sofar));
        },
      },
    );
    store(() => finish(system, id, report));
    await stored;
    const changed = await recordObservations(system, observationsOfPreflight(report, new Date()));
    if (changed.length > 0) signals.publish("evidence", changed);
  } catch (error) {
    log.warn({ err: error, correlation_id: correlationId }, "a preflight was interrupted");
    store(() => interrupt(system, id));
    await stored;
  }
}
