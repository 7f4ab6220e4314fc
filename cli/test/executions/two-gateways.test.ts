// Two gateways of one installation with a Redis, all as processes of their own, and agents that reach either gateway through one
// address. What ran is counted by a file that no process of the product knows.

import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createAgentPairingToken } from "@holdfast/contracts/endpoints/agents";
import {
  DISPATCH_TOKEN_HEADER,
  type DispatchBody,
  dispatchPaths,
  requestIdOf,
} from "@holdfast/contracts/execution/dispatch";
import { beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../../scripts/facilities.mjs";
import { scratchDirectory } from "../../../testkit/agent/scratch.ts";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";
import { newHost, shellStep } from "../support/executions.ts";
import type { GatewayPair, PairedGateway } from "../support/gateway-pair.ts";
import { openRollingPair, rollGateways } from "../torture/gateways.ts";

/** `npm run torture -- gateways` does it with a hundred. */
const COUNT = 10;
const without = lacks("root") || lacks("redis");
const trace = join(scratchDirectory(), "trace");
let pair: GatewayPair;

beforeAll(async () => {
  if (without) return;
  appendFileSync(trace, "");
  pair = await openRollingPair(COUNT);
  atEnd(() => pair.cleanUp());
});

const agentsAt = (gateway: PairedGateway) => gateway.metric("holdfast_gateway_agents", "current");
const agentsAtBoth = () => Promise.all(pair.gateways.map(agentsAt));

async function ask({ internalUrl }: PairedGateway, path: string, body?: DispatchBody) {
  const response = await fetch(`${internalUrl}${path}`, {
    headers: { [DISPATCH_TOKEN_HEADER]: pair.dispatchToken, "content-type": "application/json" },
    ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

describe.skipIf(without)("two gateways", () => {
  it("EXEC-06 serve each other's agents, for callers that wait and for those that ask later", async () => {
    const { installation, call, org, ready } = pair;
    const { token } = await call(createAgentPairingToken, { params: { org_id: org } });
    const agent = newHost(installation).connect(["--pairing-token", token, "--api-base", ready.api_url]);
    await expect.poll(async () => (await agentsAtBoth()).toSorted()).toEqual([0, 1]);
    const [a, b] = (await agentsAt(pair.gateways[0])) === 1 ? pair.gateways : [pair.gateways[1], pair.gateways[0]];
    const [waited, later] = ["waited", "later"].map((mark) =>
      shellStep(org, `echo ${mark} >> '${trace}'; echo ${mark}`),
    );
    if (!waited || !later) throw new Error("unreachable: there are two steps");
    const answer = await ask(b, dispatchPaths.dispatch, waited);
    expect(answer).toMatchObject({ status: 200, body: { status: "succeeded", output: { stdout: "waited\n" } } });
    const requestId = requestIdOf(later);
    const results = `${dispatchPaths.results}/${encodeURIComponent(requestId)}`;
    expect(await ask(b, dispatchPaths.dispatchAsync, later)).toEqual({
      ...{ status: 201, body: { requestId, dispatched: true } },
    });
    await expect.poll(() => ask(b, results)).toMatchObject({ status: 200, body: { status: "succeeded" } });
    expect(await ask(a, results)).toEqual(await ask(b, results));
    expect((await ask(a, dispatchPaths.dispatch, waited)).body).toEqual(answer.body);
    expect(await ask(a, dispatchPaths.dispatchAsync, later)).toMatchObject({
      status: 200,
      body: { cached: true },
    });
    expect(readFileSync(trace, "utf8")).toBe("waited\nlater\n");
    agent.process.kill("SIGTERM");
    await agent.ended;
  });

  it("EXEC-06 TERM-07 are restarted, and lose their Redis, under executions and shells: nothing is lost or interrupted", async () => {
    const report = await rollGateways(pair, { count: COUNT });
    expect(report).toMatchObject({ lost: [], notOnce: [], interrupted: [], shells: COUNT });
    expect(report.executions.meanwhile).toBeGreaterThan(COUNT);
    expect(report.typed).toBeGreaterThan(COUNT);
  });
});
