// Agents of another system, as they are in the field, at a whole installation: `holdfast up` with everything that it starts.
// The agent here was written from the description of the wire alone, and is as strict.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { requestIdOf } from "@holdfast/contracts/execution/dispatch";
import { beforeAll, describe, expect, it } from "vitest";
import { countedSteps } from "../../../node-agent/test/support/counted-steps.ts";
import { scratchDirectory } from "../../../testkit/agent/scratch.ts";
import { OlderAgent, type OlderAgentOptions } from "../../../testkit/agents/older-agent.ts";
import {
  type Answered,
  dispatch,
  dispatchAsync,
  dispatchBody,
  resultOf,
} from "../../../testkit/gateway/agents.ts";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";
import { until } from "../../../testkit/processes/holdfast.ts";
import { type ExecutionSite, openExecutionSite, shellStep } from "../support/executions.ts";

/** A paired agent says hello after its socket has opened: requests wait for that. */
const WAIT_MS = 100_000;

let site: ExecutionSite;
beforeAll(async () => {
  site = await openExecutionSite();
});

/** Chosen by its id: agents of other tests stay connected. */
async function connectOlder(options: Partial<OlderAgentOptions> = {}) {
  const created = await site.post(`/v1/orgs/${site.org}/agents/pairing-tokens`);
  expect(created).toEqual({
    ...{ status: 201, body: { token: expect.stringMatching(`^${site.org}\\.`), expiresAt: expect.any(String) } },
  });
  const { agentId, agentToken, organizationId, gatewayWsUrl } = await OlderAgent.pair(site.ready.api_url, {
    token: String(created.body["token"]),
    name: "plant-7",
  });
  const journal = join(scratchDirectory(), "journal");
  const agent = new OlderAgent({ url: gatewayWsUrl, token: agentToken, journal, ...options });
  atEnd(() => agent.stop());
  await agent.start();
  const only = { selectorAgentId: agentId, waitMs: WAIT_MS };
  return { agent, agentId, organizationId, only, ran: () => readFileSync(journal, "utf8").trim().split("\n") };
}

/** What the agent sends on this socket from now on gets lost. */
function loseFrames({ socket }: OlderAgent): string[] {
  const lost: string[] = [];
  if (socket) socket.send = (frame: unknown) => void lost.push(String(frame));
  return lost;
}

async function resultOnceReady(requestId: string): Promise<Answered["body"]> {
  let answered: Answered | undefined;
  await until(async () => {
    // The gateway may be restarting.
    answered = await resultOf(site, requestId).catch(() => undefined);
    return answered?.status === 200;
  });
  return answered?.body ?? {};
}

describe("an agent of another system", () => {
  it("EXEC-08 pairs by the API, connects where it is told to, and serves both kinds of step", async () => {
    const { agent, agentId, organizationId, only } = await connectOlder({
      capabilities: { kinds: ["connector.action", "agent.execute"], connectors: ["echo"], tags: ["plant"] },
    });
    expect(organizationId).toBe(site.org);
    const action = dispatchBody(site.org, { ...only, secret: "s3cret" });
    expect(await dispatch(site, action)).toMatchObject({
      ...{ status: 200, body: { status: "succeeded", output: { echo: "hello" } } },
    });
    const { body } = await dispatch(site, shellStep(site.org, "echo out; echo err >&2", only));
    expect(body).toMatchObject({
      ...{ status: "succeeded", output: { backend: "host", exitCode: 0, stdout: "out\n", stderr: "err\n" } },
    });
    const failing = await dispatch(site, shellStep(site.org, "exit 3", only));
    expect(failing).toMatchObject({ status: 200, body: { status: "failed", output: { exitCode: 3 } } });
    expect(agent.executed.map(({ kind, secret }) => [kind, secret])).toEqual([
      ["connector.action", "s3cret"],
      ["agent.execute", undefined],
      ["agent.execute", undefined],
    ]);
    expect(agent.dropped).toEqual([]);
    const found = (await site.agents()).find(({ id }) => id === agentId);
    expect(found).toMatchObject({ name: "plant-7", status: "online", protocolVersion: 0, tags: ["plant"] });
  });

  it("EXEC-03 is not given a connector that it does not list", async () => {
    const { agent, only } = await connectOlder({
      capabilities: { kinds: ["connector.action", "agent.execute"], connectors: ["echo"] },
    });
    await dispatch(site, dispatchBody(site.org, only));
    const other = { connectorId: "github", actionId: "issue.create" };
    const refused = await dispatch(site, dispatchBody(site.org, { ...only, waitMs: 0, payload: other }));
    expect(refused).toMatchObject({ status: 503, body: { code: "NO_AGENT_AVAILABLE" } });
    expect(refused.text).toContain("connector_missing");
    expect(agent.executed).toHaveLength(1);
  });

  it("EXEC-05 has failed a shell task whose result has no exitCode, whatever it says", async () => {
    const { only } = await connectOlder({
      run: async () => ({ status: "succeeded", output: { accepted: true } }),
    });
    const { body } = await dispatch(site, shellStep(site.org, "true", only));
    expect(body).toMatchObject({ status: "failed", error: "NODE_EXECUTION_FAILED" });
  });

  it("EXEC-02 EXEC-04 repeats its result after a gateway was killed, and is sent nothing twice", async () => {
    const { agent, only, ran } = await connectOlder();
    const [ended, under] = [countedSteps(), countedSteps()];
    const first = shellStep(site.org, ended.script("ended"), only);
    const second = shellStep(site.org, under.script("under way"), only);
    expect(await dispatchAsync(site, first)).toMatchObject({
      ...{ status: 201, body: { requestId: requestIdOf(first), dispatched: true } },
    });
    const abandoned = dispatch(site, second).catch((error: Error) => error);
    await expect.poll(() => [...ended.runs(), ...under.runs()]).toEqual(["ended", "under way"]);
    const lost = loseFrames(agent);
    ended.release();
    await expect.poll(() => lost.join()).toContain(requestIdOf(first));

    process.kill(site.installation.upFile().children.gateway?.pid ?? 0, "SIGKILL");
    expect(await abandoned).toBeInstanceOf(Error);
    await agent.until(() => agent.opened === 2);
    expect(await resultOnceReady(requestIdOf(first))).toMatchObject({
      ...{ status: "succeeded", output: { exitCode: 0 } },
    });
    const retried = dispatch(site, second);
    under.release();
    expect((await retried).body).toMatchObject({ status: "succeeded", output: { exitCode: 0 } });
    expect(await dispatchAsync(site, first)).toMatchObject({
      status: 200,
      body: { dispatched: false, cached: true },
    });
    // Requests are sent to it in order: one that was sent again would have come before this one.
    const third = dispatchBody(site.org, only);
    await dispatch(site, third);
    expect(ran()).toEqual([first, second, third].map(requestIdOf));
    expect([...ended.runs(), ...under.runs()]).toEqual(["ended", "under way"]);
  });

  it("EXEC-04 is disconnected once before a deadline, and repeats the result that got lost", async () => {
    const { agent, only, ran } = await connectOlder();
    const [printed, endless] = [countedSteps(), countedSteps()];
    const deadline = { ...only, timeoutMs: 20_000 };
    const lossy = shellStep(site.org, printed.script("printed"), deadline);
    const stuck = shellStep(site.org, endless.script("stuck"), deadline);
    const answers = Promise.all([lossy, stuck].map((body) => dispatch(site, body)));
    await expect.poll(() => [...printed.runs(), ...endless.runs()]).toEqual(["printed", "stuck"]);
    loseFrames(agent);
    printed.release();
    expect((await answers).map(({ body }) => body)).toMatchObject([
      { status: "succeeded", output: { exitCode: 0 } },
      { status: "failed", error: "NODE_EXECUTION_TIMEOUT" },
    ]);
    expect([agent.opened, agent.closes.map(({ code }) => code)]).toEqual([2, [4000]]);
    expect(ran().toSorted()).toEqual([lossy, stuck].map(requestIdOf).toSorted());
    endless.release();
  });

  it("EXEC-07 that is revoked is disconnected at once, and refused with 401 before the upgrade", async () => {
    const { agent, agentId, only } = await connectOlder();
    await dispatch(site, dispatchBody(site.org, only));
    const agents = `/v1/orgs/${site.org}/agents`;
    expect(await site.post(`${agents}/${agentId}/revoke`)).toEqual({ status: 200, body: { ok: true } });
    // It goes on trying, as such agents do.
    await agent.until(() => agent.refusals.length > 1);
    expect([agent.opened, agent.closes[0]?.code, agent.dropped]).toEqual([1, 4401, []]);
    expect(agent.refusals.slice(0, 2)).toEqual([401, 401]);
    const refused = await dispatch(site, dispatchBody(site.org, { ...only, waitMs: 0 }));
    expect(refused).toMatchObject({ status: 503, body: { code: "NO_AGENT_AVAILABLE" } });
    expect((await site.agents()).find(({ id }) => id === agentId)).toMatchObject({ status: "revoked" });
    const unknown = await site.post(`${agents}/${site.org}/revoke`);
    expect(unknown).toMatchObject({ status: 404, body: { code: "AGENT_NOT_FOUND" } });
  });
});
