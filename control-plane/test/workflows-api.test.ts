// Workflows over HTTP, on a real api and database: drafts, published versions, and what is refused.

import { codeOf } from "@holdfast/contracts/client";
import { listAudit } from "@holdfast/contracts/endpoints/audit";
import {
  applyWorkflow,
  deleteWorkflow,
  getWorkflow,
  getWorkflowVersion,
  listWorkflows,
  listWorkflowVersions,
  publishWorkflow,
} from "@holdfast/contracts/endpoints/workflows";
import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  addMember,
  type Browser,
  createOrg,
  startTestApi,
  type TestApi,
  type TestOrg,
} from "../../testkit/api/api.ts";
import { openRoles } from "../../testkit/database/database.ts";
import { type Sql, withOrg } from "../src/database/connect.ts";

let api: TestApi;
let app: Sql;
let system: Sql;
let org: TestOrg;
let admin: Browser;

beforeAll(async () => {
  api = await startTestApi();
  ({ app, system } = openRoles(api.database));
});

beforeEach(async () => {
  const slug = `org-${uuidv7().slice(-12)}`;
  org = await createOrg(api, slug);
  admin = await addMember(api, org, `admin@${slug}.example`, "admin");
});

const client = (who = admin) => who.client(org.id);
const source = (wait: string) => `# nightly\nversion: "1"\nnodes:\n  pause: { type: wait, for: ${wait} }\n`;
const apply = (text: string, more: { revision?: number; name?: string } = {}) =>
  client()(applyWorkflow, { body: { name: "nightly", source: text, ...more } });
const publish = (id: string, body: { revision?: number } = {}) =>
  client()(publishWorkflow, { params: { workflow_id: id }, body });

describe("FLOW-01 drafts", () => {
  it("are kept as they were written, and counted", async () => {
    const first = await apply(source("1s"));
    expect(first).toMatchObject({
      name: "nightly",
      revision: 1,
      draft_valid: true,
      published_version: null,
      problems: [],
    });
    expect(await apply(source("1s"))).toMatchObject({ id: first.id, revision: 1 });
    expect(await apply(source("2s"))).toMatchObject({ id: first.id, revision: 2, changed_since_published: true });
    const shown = await client()(getWorkflow, { params: { workflow_id: first.id } });
    expect(shown.source).toBe(source("2s"));
  });

  it("may be invalid, and then cannot be published", async () => {
    const draft = await apply('version: "1"\nnodes:\n  a: { type: join, after: [b] }\n');
    expect(draft.draft_valid).toBe(false);
    expect(draft.problems).toMatchObject([{ code: "unknown_node", line: 3, column: 28 }]);
    const refused = await publish(draft.id).catch((error) => error);
    expect(codeOf(refused)).toBe("workflow_invalid");
    expect(refused.envelope.details.problems).toEqual(draft.problems);
    expect((await client()(listWorkflowVersions, { params: { workflow_id: draft.id } })).items).toEqual([]);
  });

  it("are not overwritten by somebody who has seen another revision", async () => {
    expect(codeOf(await apply(source("1s"), { revision: 1 }).catch((error) => error))).toBe("workflow_changed");
    await apply(source("1s"), { revision: 0 });
    await apply(source("2s"), { revision: 1 });
    expect(codeOf(await apply(source("3s"), { revision: 1 }).catch((error) => error))).toBe("workflow_changed");
  });

  it("are saved once when two create them at the same time", async () => {
    const both = await Promise.all([apply(source("1s")), apply(source("1s"))]);
    expect(new Set(both.map(({ id }) => id)).size).toBe(1);
  });
});

describe("FLOW-01 published versions", () => {
  it("count up, keep their document, and say what has changed", async () => {
    const { id } = await apply(source("1s"));
    expect(await publish(id)).toMatchObject({
      version: 1,
      changes: [],
      workflow: { changed_since_published: false },
    });
    expect(await publish(id)).toMatchObject({ version: 1 });
    await apply(source("2s"));
    expect(await publish(id)).toMatchObject({
      version: 2,
      changes: [{ kind: "changed", path: "nodes.pause.for", before: "1s", after: "2s" }],
    });
    const params = { workflow_id: id };
    const first = await client()(getWorkflowVersion, { params, query: { number: 1 } });
    expect(first).toMatchObject({ version: 1, source: source("1s") });
    const { items } = await client()(listWorkflowVersions, { params });
    expect(items.map(({ version }) => version)).toEqual([2, 1]);
    expect(codeOf(await client()(getWorkflowVersion, { params, query: { number: 3 } }).catch((e) => e))).toBe(
      "not_found",
    );
  });

  it("are of the draft that was meant", async () => {
    const { id } = await apply(source("1s"));
    await apply(source("2s"));
    expect(codeOf(await publish(id, { revision: 1 }).catch((error) => error))).toBe("workflow_changed");
    expect(await publish(id, { revision: 2 })).toMatchObject({ version: 1 });
  });

  it("cannot be changed or removed by any role of the product", async () => {
    const { id } = await apply(source("1s"));
    await publish(id);
    const refused = /permission denied/;
    const asApp = (work: (tx: Sql) => Promise<unknown>) =>
      withOrg(app, org.id, (tx) => work(tx as unknown as Sql));
    for (const run of [asApp, (work: (tx: Sql) => Promise<unknown>) => work(system)]) {
      await expect(
        run((tx) => tx`UPDATE workflow_versions SET source = '' WHERE workflow_id = ${id}`),
      ).rejects.toThrow(refused);
      await expect(run((tx) => tx`DELETE FROM workflow_versions WHERE workflow_id = ${id}`)).rejects.toThrow(
        refused,
      );
    }
  });

  it("of several that publish at the same time are one", async () => {
    const { id } = await apply(source("1s"));
    const all = await Promise.all([publish(id), publish(id), publish(id)]);
    expect(all.map(({ version }) => version)).toEqual([1, 1, 1]);
  });
});

describe("FLOW-01 workflows", () => {
  it("free their name when they are deleted, and are not found any more", async () => {
    const { id } = await apply(source("1s"));
    await publish(id);
    await client()(deleteWorkflow, { params: { workflow_id: id } });
    expect(codeOf(await client()(getWorkflow, { params: { workflow_id: id } }).catch((error) => error))).toBe(
      "not_found",
    );
    expect((await client()(listWorkflows, {})).items).toEqual([]);
    expect(await apply(source("1s"))).toMatchObject({ revision: 1, published_version: null });
  });

  it("are seen by members, and changed by admins only", async () => {
    const { id } = await apply(source("1s"));
    const member = client(await addMember(api, org, `member@${org.slug}.example`, "member"));
    expect((await member(listWorkflows, { query: { name: "nightly" } })).items).toMatchObject([{ id }]);
    const refused = [
      () => member(applyWorkflow, { body: { name: "nightly", source: source("9s") } }),
      () => member(publishWorkflow, { params: { workflow_id: id }, body: {} }),
      () => member(deleteWorkflow, { params: { workflow_id: id } }),
    ];
    for (const call of refused) expect(codeOf(await call().catch((error) => error))).toBe("forbidden");
  });

  it("are in the audit with who changed them, and without their document", async () => {
    const { id } = await apply(source("1s"));
    await publish(id);
    const { items } = await client()(listAudit, {});
    const events = items.filter(({ target_id }) => target_id === id);
    expect(events.map(({ action }) => action)).toEqual(["workflow.publish", "workflow.apply"]);
    expect(events[0]).toMatchObject({
      actor_name: `admin@${org.slug}.example`,
      details: { version: 1, revision: 1 },
    });
    expect(JSON.stringify(events)).not.toContain("pause");
  });
});
