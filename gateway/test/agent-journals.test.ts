// One agent with two journals, as its real self at a real gateway and api: its state directory is lost while its credentials
// are kept, or they are copied to a second host. Whatever the first one was given never runs at the second. Runs are counted
// in a file that neither product nor database knows.

import { once } from "node:events";
import { rmSync } from "node:fs";
import { type AddressInfo, createServer, connect as dial, type Socket } from "node:net";
import { join } from "node:path";
import { createAgentPairingToken, listAgents, pairAgent } from "@holdfast/contracts/endpoints/agents";
import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { requestIdOf } from "@holdfast/contracts/execution/dispatch";
import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Credentials } from "../../node-agent/src/execution/credentials.ts";
import { countedSteps } from "../../node-agent/test/support/counted-steps.ts";
import { startTestExecutionAgent } from "../../node-agent/test/support/execution-agent.ts";
import { scratchDirectory } from "../../testkit/agent/scratch.ts";
import { createOrg, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import { openRoles } from "../../testkit/database/database.ts";
import { dispatchAsync, dispatchBody, resultOf } from "../../testkit/gateway/agents.ts";
import { SERVICE_TOKEN } from "../../testkit/gateway/api.ts";
import { startTestGateway, type TestGateway } from "../../testkit/gateway/gateway.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";

let api: TestApi;
let gateway: TestGateway;
let org: TestOrg;

beforeAll(async () => {
  api = await startTestApi({ env: { HOLDFAST_SERVICE_TOKEN: SERVICE_TOKEN } });
  gateway = await startTestGateway({ url: api.internalUrl });
});
beforeEach(async () => {
  org = await createOrg(api, `org-${uuidv7().slice(-12)}`);
});

async function pairedCredentials(): Promise<Credentials> {
  const call = api.operator(org.id);
  const { token: pairingToken } = await call(createAgentPairingToken, { params: { org_id: org.id } });
  const capabilities = { kinds: ["agent.execute"] };
  const paired = await call(pairAgent, { body: { pairingToken, name: "east", agentVersion: "1", capabilities } });
  const { keySet, ...issued } = paired;
  const keys = keySet.content.keys as NonNullable<Credentials["keySet"]>["keys"];
  return {
    ...issued,
    ...{ gatewayWsUrl: gateway.agentUrl, apiBaseUrl: api.url, name: "east" },
    keySet: { version: keySet.version, keys },
  };
}

/** The agent gets what it is sent; from `mute` on, nothing that it says arrives. */
async function startMutableRelay() {
  const target = Number(new URL(gateway.url).port);
  const sockets = new Set<Socket>();
  let muted = false;
  const server = createServer((near) => {
    const far = dial(target, "127.0.0.1");
    near.on("data", (piece) => muted || far.write(piece));
    far.pipe(near);
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.once("close", () => other.destroy());
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const mute = () => {
    muted = true;
  };
  const cut = () => sockets.forEach((socket) => void socket.destroy());
  atEnd(() => {
    cut();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `ws://127.0.0.1:${port}/ws`, cut, mute };
}

const start = (credentials: Credentials, directory: string) =>
  startTestExecutionAgent({ credentials: () => credentials, agentId: credentials.agentId } as never, {
    directory,
    deliveryMs: 1,
  });

const step = (script: string) =>
  dispatchBody(org.id, {
    ...{ nodeId: "step", nodeType: "agent.execute", kind: "agent.execute", timeoutMs: 600_000 },
    payload: {
      nodeId: "step",
      node: { id: "step", type: "agent.execute", config: { task: { type: "shell", script } } },
    },
  });

/** Runs a step on an agent that is heard no more from then on. */
async function runUnheard(credentials: Credentials, directory: string) {
  const relay = await startMutableRelay();
  const agent = await start({ ...credentials, gatewayWsUrl: relay.url }, directory);
  relay.mute();
  const steps = countedSteps();
  steps.release();
  const lost = step(steps.script("lost"));
  expect((await dispatchAsync(gateway, lost)).status).toBe(201);
  await expect.poll(steps.runs).toEqual(["lost"]);
  return { agent, relay, steps, requestId: requestIdOf(lost) };
}

/** The connected agent serves, has not run the first step, and that one ends with the reason. */
async function neverRunsAgain({
  steps,
  requestId,
}: Pick<Awaited<ReturnType<typeof runUnheard>>, "steps" | "requestId">) {
  const next = step(steps.script("next"));
  expect((await dispatchAsync(gateway, next)).status).toBe(201);
  await expect.poll(() => resultOf(gateway, requestIdOf(next))).toMatchObject({ body: { status: "succeeded" } });
  expect(steps.runs()).toEqual(["lost", "next"]);
  const { superuser } = openRoles(api.database);
  await superuser`UPDATE executions SET deadline_at = now() WHERE request_id = ${requestId}`;
  await expect.poll(() => resultOf(gateway, requestId)).toMatchObject({ status: 200 });
  expect((await resultOf(gateway, requestId)).body).toEqual({
    ...{ status: "failed", error: "AGENT_DISCONNECTED" },
    output: { message: expect.stringContaining("another journal") },
  });
}

const journalChanges = async () => {
  const { items } = await api.operator(org.id)(listAudit, { query: {} });
  return items.filter(({ action }) => action === "agent.journal_changed");
};

describe("an agent whose step ran without anybody hearing of it", () => {
  it("EXEC-02 does not run it again after its state directory was lost", async () => {
    const credentials = await pairedCredentials();
    const directory = scratchDirectory();
    const { agent, relay, ...ran } = await runUnheard(credentials, directory);
    relay.cut();
    await agent.stop();
    rmSync(join(directory, "executions"), { recursive: true });
    await start(credentials, directory);
    await neverRunsAgain(ran);
    expect(await journalChanges()).toHaveLength(1);
  });

  it("EXEC-02 does not run it again on a second host that has its credentials, and says that there are two", async () => {
    const credentials = await pairedCredentials();
    const { relay, ...ran } = await runUnheard(credentials, scratchDirectory());
    await start(credentials, scratchDirectory());
    await neverRunsAgain(ran);
    expect(await journalChanges()).toMatchObject([
      { target_id: credentials.agentId, details: { earlier_connection_open: true } },
    ]);
    const { agents } = await api.operator(org.id)(listAgents, { params: { org_id: org.id } });
    expect(agents).toMatchObject([{ id: credentials.agentId, status: "online" }]);
    relay.cut();
  });

  it("EXEC-02 is sent it again by its own journal, which reports the result", async () => {
    const credentials = await pairedCredentials();
    const directory = scratchDirectory();
    const { agent, relay, steps, requestId } = await runUnheard(credentials, directory);
    relay.cut();
    await agent.stop();
    await start(credentials, directory);
    await expect.poll(() => resultOf(gateway, requestId)).toMatchObject({ body: { status: "succeeded" } });
    expect(steps.runs()).toEqual(["lost"]);
    expect(await journalChanges()).toEqual([]);
  });
});
