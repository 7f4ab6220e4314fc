// How many allocations may exist at a time: for each owner and for the organization, also when many ask at once.

import { CallError, type Client } from "@holdfast/contracts/client";
import {
  type Allocation,
  createAllocation,
  releaseAllocation,
  transferAllocation,
} from "@holdfast/contracts/endpoints/allocations";
import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { getQuotas, updateMemberQuota, updateQuotas } from "@holdfast/contracts/endpoints/quotas";
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
import { insertNode, type TestNode } from "../../testkit/api/replica.ts";
import { openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";

let api: TestApi;
let superuser: Sql;
let kelp: TestOrg;
let node: TestNode;
let ada: Browser;
let bob: Browser;
let admin: Browser;
let operator: Client;

beforeAll(async () => {
  api = await startTestApi();
  ({ superuser } = openRoles(api.database));
  kelp = await createOrg(api, "kelp");
  node = await insertNode(superuser, kelp.id, { name: "reef-1" });
  ada = await addMember(api, kelp, "ada@kelp.example", "member");
  bob = await addMember(api, kelp, "bob@kelp.example", "member");
  admin = await addMember(api, kelp, "admin@kelp.example", "admin");
  operator = api.operator(kelp.id);
});

beforeEach(async () => {
  await superuser`UPDATE allocations SET status = 'released', released_at = now() WHERE status <> 'released'`;
  await superuser`UPDATE organizations SET allocation_limit = 500, owner_allocation_limit = 25`;
  await superuser`UPDATE memberships SET allocation_limit = NULL`;
});

const as = (person: Browser): Client => person.client(kelp.id);
const idOf = ({ me }: Browser): string => me.id ?? "";
const create = (by: Client, more: { owner_id?: string } = {}): Promise<Allocation> =>
  by(createAllocation, { body: { node_id: node.id, username: `u${uuidv7().slice(-8)}`, ...more } });

async function refusal(asked: Promise<unknown>) {
  const error = await asked.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof CallError)) throw new Error(`not refused: ${JSON.stringify(error)}`);
  const { code, details, message, next_step } = error.envelope;
  return { status: error.status, code, details, message, next_step };
}

const live = async () => {
  const [row] = await superuser<{ n: number }[]>`
    SELECT count(*)::int AS n FROM allocations WHERE status <> 'released'`;
  return row?.n;
};

describe("a limit", () => {
  it("SEC-01 has defaults, and everybody sees their own numbers", async () => {
    await create(as(ada));
    expect(await as(ada)(getQuotas, {})).toEqual({
      ...{ organization: { limit: 500, used: 1 }, per_owner: 25, own: { limit: 25, used: 1 }, members: [] },
    });
    const whole = await as(admin)(getQuotas, {});
    expect(whole.members).toEqual([
      { user_id: idOf(ada), email: "ada@kelp.example", own_limit: false, limit: 25, used: 1 },
    ]);
    expect((await operator(getQuotas, {})).own).toBeNull();
  });

  it("SEC-01 for each owner is refused beyond, with the numbers and what to do", async () => {
    await as(admin)(updateQuotas, { body: { per_owner: 2 } });
    const first = await create(as(ada));
    await create(as(ada));
    const refused = await refusal(create(as(ada)));
    expect(refused).toMatchObject({
      ...{ status: 409, code: "quota_exceeded", details: { scope: "owner", limit: 2, used: 2 } },
      message: "The owner has 2 of at most 2 allocations. All count that are not released.",
    });
    expect(refused.next_step).toContain("holdfast quota set --member <email> --limit <count>");
    await create(as(bob));
    await as(ada)(releaseAllocation, { params: { allocation_id: first.id } });
    expect((await refusal(create(as(ada)))).code, "still being removed").toBe("quota_exceeded");
    await superuser`UPDATE allocations SET status = 'released', released_at = now() WHERE id = ${first.id}`;
    await create(as(ada));
  });

  it("SEC-01 of one member stands instead of the common one, until it is taken back", async () => {
    await as(admin)(updateQuotas, { body: { per_owner: 1 } });
    const params = { user_id: idOf(ada) };
    await as(admin)(updateMemberQuota, { params, body: { limit: 2 } });
    await Promise.all([create(as(ada)), create(as(ada))]);
    expect((await refusal(create(as(ada)))).details).toEqual({ scope: "owner", limit: 2, used: 2 });
    await as(admin)(updateMemberQuota, { params, body: { limit: null } });
    expect((await refusal(create(as(ada)))).details).toEqual({ scope: "owner", limit: 1, used: 2 });
    const { items } = await as(admin)(listAudit, { query: { action: "quota." } });
    expect(items.map(({ action, details }) => [action, details])).toContainEqual([
      ...["quota.update_member", { limit: 2 }],
    ]);
  });

  it("SEC-01 holds for the owner of what an administrator creates or transfers", async () => {
    await as(admin)(updateQuotas, { body: { per_owner: 1 } });
    await create(as(admin), { owner_id: idOf(ada) });
    const own = await create(as(admin));
    expect((await refusal(create(as(admin), { owner_id: idOf(ada) }))).code).toBe("quota_exceeded");
    const transfer = as(admin)(transferAllocation, {
      params: { allocation_id: own.id },
      body: { owner_id: idOf(ada) },
    });
    expect((await refusal(transfer)).code).toBe("quota_exceeded");
  });

  it("SEC-01 of the organization is the operator's, and holds for all together", async () => {
    const body = { organization: 1 };
    expect(await refusal(as(admin)(updateQuotas, { body }))).toMatchObject({ status: 403 });
    await operator(updateQuotas, { body });
    await create(as(ada));
    const refused = await refusal(create(as(bob)));
    expect(refused).toMatchObject({
      ...{ code: "quota_exceeded", details: { scope: "organization", limit: 1, used: 1 } },
    });
    expect(refused.next_step).toContain("holdfast quota set --organization <count>");
    expect(await refusal(create(operator))).toMatchObject({ code: "quota_exceeded" });
  });

  it("SEC-01 is for administrators to change", async () => {
    expect(await refusal(as(ada)(updateQuotas, { body: { per_owner: 100 } }))).toMatchObject({ status: 403 });
    const own = as(ada)(updateMemberQuota, { params: { user_id: idOf(ada) }, body: { limit: 100 } });
    expect(await refusal(own)).toMatchObject({ status: 403 });
    expect(await refusal(as(admin)(updateQuotas, { body: {} }))).toMatchObject({ status: 400 });
  });

  it.for([
    { scope: "owner", limits: { per_owner: 3 } },
    { scope: "organization", limits: { organization: 3 } },
  ])("SEC-01 of the $scope is not exceeded by many requests at once", async ({ limits }) => {
    await operator(updateQuotas, { body: limits });
    const outcomes = await Promise.allSettled(Array.from({ length: 8 }, () => create(as(ada))));
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(3);
    expect(await live()).toBe(3);
  });
});
