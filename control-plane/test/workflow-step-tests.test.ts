// Tests of single steps of a draft, on a real api and database, continued by the engine.

import { codeOf, createClient } from "@holdfast/contracts/client";
import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { listRecentRuns } from "@holdfast/contracts/endpoints/recent-runs";
import { getRun, listRunEvents, retryRun, testStep } from "@holdfast/contracts/endpoints/runs";
import { createToken } from "@holdfast/contracts/endpoints/tokens";
import {
  applyWorkflow,
  getWorkflowVersion,
  listWorkflowVersions,
  publishWorkflow,
} from "@holdfast/contracts/endpoints/workflows";
import type { Scope } from "@holdfast/contracts/public/permissions";
import { createLog } from "@holdfast/service/log";
import { beforeAll, describe, expect, it } from "vitest";
import { addMember, createOrg, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import { openRoles } from "../../testkit/database/database.ts";
import { startWebhookServer, type WebhookServer } from "../../testkit/receivers/webhook-server.ts";
import type { Sql } from "../src/database/connect.ts";
import { continueRuns } from "../src/workflows/engine/turn.ts";

let api: TestApi;
let system: Sql;
let server: WebhookServer;
let org: TestOrg;
let workflow_id: string;

beforeAll(async () => {
  api = await startTestApi();
  ({ system } = openRoles(api.database));
  server = await startWebhookServer();
  org = await createOrg(api, "steps");
  const body = { name: "draft", source: "version: 1\nnodes:\n" };
  workflow_id = (await api.operator(org.id)(applyWorkflow, { body })).id;
});

const client = () => api.operator(org.id);
const turn = () =>
  continueRuns({
    ...{ system, log: createLog({ process: "test", level: "silent" }), pollMs: 100, concurrency: 10 },
    ...{ stepTimeoutMs: 10_000, runsPerOrg: 100, queue: "workflow-continuations", allowedNetworks: ["127.0.0.1"] },
    gateway: { url: undefined, token: undefined },
  });
const source = () => `version: 1
nodes:
  first: { type: http.request, method: POST, url: "${server.url}" }
  tell: { type: http.request, method: POST, after: [first], url: "${server.url}", body: "\${{ nodes.first.output.who & ' at ' & input.site }}" }
`;
const test = (node: string, more: object = {}) =>
  client()(testStep, { params: { workflow_id }, body: { source: source(), node, ...more } });

describe("FLOW-01 the test of a step of a draft", () => {
  it("runs that step alone, with what is given for those before it, and publishes nothing", async () => {
    const input = { site: "north" } as never;
    const outputs = { first: { who: "ada" } } as never;
    const { id, version } = await test("tell", { input, outputs });
    expect(version).toBe(-1);
    await turn();
    expect(server.received.map(({ body }) => body)).toEqual(["ada at north"]);
    const run = await client()(getRun, { params: { run_id: id } });
    expect(run).toMatchObject({ status: "succeeded", nodes: [{ id: "first" }, { id: "tell", attempt: 1 }] });
    const { items } = await client()(listRunEvents, { params: { run_id: id } });
    expect(items.at(-1)).toMatchObject({ type: "run_succeeded" });

    expect((await test("tell", { input, outputs })).version).toBe(-2);
    expect((await client()(listWorkflowVersions, { params: { workflow_id } })).items).toEqual([]);
    const query = { number: -1 };
    expect((await client()(getWorkflowVersion, { params: { workflow_id }, query })).source).toContain(
      "Given output",
    );
    await client()(applyWorkflow, { body: { name: "draft", source: source() } });
    expect((await client()(publishWorkflow, { params: { workflow_id }, body: {} })).version).toBe(1);
    const recent = await client()(listRecentRuns, { query: { workflow_ids: workflow_id, each: 5 } });
    expect(recent.items.flatMap(({ runs }) => runs)).toEqual([]);
    const audit = await client()(listAudit, { query: { action: "run.test" } });
    expect(audit.items[0]).toMatchObject({ target_id: expect.any(String), details: { node: "tell" } });
    await turn();
  });

  it("is refused with what is missing, and where the document is wrong", async () => {
    const refusal = (work: Promise<unknown>): Promise<unknown[]> =>
      work.then(
        () => [],
        (error) => [codeOf(error), error.envelope.message],
      );
    expect(await refusal(test("tell"))).toEqual([
      "step_not_testable",
      "tell reads the output of first, and none is given for it.",
    ]);
    expect(
      (await refusal(test("tell", { source: "version: 1\nnodes: { a: { type: parallel, after: [b] } }" })))[0],
    ).toBe("workflow_invalid");
    const params = { workflow_id: "019a0000-0000-7000-8000-000000000000" };
    expect(
      codeOf(await client()(testStep, { params, body: { source: source(), node: "first" } }).catch((e) => e)),
    ).toBe("not_found");
  });

  it("that fails is tested again, not retried as another version; members may not test", async () => {
    server.answer = (response) => response.destroy();
    const { id } = await test("first");
    await turn();
    const retry = await client()(retryRun, { params: { run_id: id }, body: { version: 1 } }).catch(
      (error) => error,
    );
    expect(codeOf(retry)).toBe("run_not_failed");
    expect(retry.envelope.message).toContain("Test the step again");
    const member = (await addMember(api, org, "member@steps.example", "member")).client(org.id);
    const refused = await member(testStep, {
      params: { workflow_id },
      body: { source: source(), node: "first" },
    }).catch((e) => e);
    expect(codeOf(refused)).toBe("forbidden");
  });

  it("SEC-03 takes a token that may run workflows, not only one that may write them", async () => {
    const tokenWith = async (...scopes: Scope[]) => {
      const body = { name: scopes.join(" "), role: "owner" as const, scopes };
      return createClient({ baseUrl: api.url, token: (await client()(createToken, { body })).token });
    };
    const call = { params: { workflow_id }, body: { source: source(), node: "first" } };
    const writer = await tokenWith("workflows:write");
    const refused = await writer(testStep, call).catch((error) => error);
    expect(codeOf(refused)).toBe("forbidden");
    expect(refused.envelope.details).toMatchObject({ needed: "workflows:run" });
    const both = await tokenWith("workflows:write", "workflows:run");
    expect(await both(testStep, call)).toMatchObject({ workflow_id });
  });
});
