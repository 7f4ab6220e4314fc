// The newest runs of several workflows at once.

import { codeOf } from "@holdfast/contracts/client";
import { listRecentRuns } from "@holdfast/contracts/endpoints/recent-runs";
import { startRun } from "@holdfast/contracts/endpoints/runs";
import { applyWorkflow, publishWorkflow } from "@holdfast/contracts/endpoints/workflows";
import { beforeAll, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";

let api: TestApi;
let org: TestOrg;
const source = 'version: "1"\nnodes:\n  only: { type: parallel }\n';

beforeAll(async () => {
  api = await startTestApi();
  org = await createOrg(api, "reef");
});

async function published(name: string, orgId = org.id): Promise<string> {
  const own = api.operator(orgId);
  const { id } = await own(applyWorkflow, { body: { name, source } });
  await own(publishWorkflow, { params: { workflow_id: id }, body: {} });
  return id;
}
const start = async (workflow_id: string, orgId = org.id) =>
  (await api.operator(orgId)(startRun, { params: { workflow_id }, body: { input: {} } })).id;
const recent = (workflow_ids: string, each = 20) =>
  api.operator(org.id)(listRecentRuns, { query: { workflow_ids, each } });

it("DASH-06 returns the newest runs of each workflow, newest first", async () => {
  const [one, other, idle] = [await published("one"), await published("other"), await published("idle")];
  const ofOne = [await start(one), await start(one), await start(one)];
  const ofOther = [await start(other)];
  const { items } = await recent([one, other, idle].join(","), 2);
  const ids = new Map(items.map(({ workflow_id, runs }) => [workflow_id, runs.map(({ id }) => id)]));
  expect(ids.get(one)).toEqual(ofOne.toReversed().slice(0, 2));
  expect(ids.get(other)).toEqual(ofOther);
  expect(ids.has(idle)).toBe(false);
  expect(items[0]?.runs[0]).toMatchObject({ status: "queued", started_at: null, finished_at: null });
});

it("DASH-06 returns nothing of other organizations, and accepts ids only", async () => {
  const stranger = await createOrg(api, "stranger");
  const theirs = await published("theirs", stranger.id);
  await start(theirs, stranger.id);
  expect(await recent(theirs)).toEqual({ items: [] });
  await expect(recent("one,two")).rejects.toSatisfy((error) => codeOf(error) === "invalid_request");
});
