// A worker in the `execute` bench: dispatches an echo at the gateway's internal listener over persistent connections, and waits for
// its result.

import { randomUUID } from "node:crypto";
import { Agent, request } from "node:http";
import { text } from "node:stream/consumers";
import { DISPATCH_TOKEN_HEADER, dispatchPaths } from "@holdfast/contracts/execution/dispatch";
import { serveRoundTrips } from "../round-trips.ts";

export type StepDispatcher = {
  url: string;
  token: string;
  orgId: string;
  tag: string;
  single: number;
  many: number;
  inFlight: number;
};

const options = JSON.parse(process.env["BENCH_OURS"] ?? "") as StepDispatcher;
const agent = new Agent({ keepAlive: true, maxSockets: options.inFlight });
const userId = randomUUID();
const headers = { [DISPATCH_TOKEN_HEADER]: options.token, "content-type": "application/json" };
const url = new URL(dispatchPaths.dispatch, options.url);

await serveRoundTrips(async () => {
  const body = JSON.stringify({
    ...{ organizationId: options.orgId, requestedByUserId: userId, runId: randomUUID(), workflowId: "bench" },
    ...{ nodeId: "echo", nodeType: "connector.action", attemptCount: 1, kind: "connector.action" },
    payload: { connectorId: "echo", actionId: "echo", input: { text: "hello" } },
    ...{ selectorTag: options.tag, waitMs: 10_000 },
  });
  const answer = JSON.parse(await post(body)) as { status?: string };
  if (answer.status !== "succeeded") throw new Error(`a step ended as ${JSON.stringify(answer)}`);
}, options);

function post(body: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { method: "POST", agent, headers }, (response) => {
      text(response).then(resolve, reject);
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}
