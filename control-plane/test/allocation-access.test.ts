// Who reaches an allocation: the pure decision, every combination, and the same in SQL.

import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, describe, expect, it } from "vitest";
import {
  addMember,
  createOrg,
  startTestApi,
  type TestApi,
  type TestOrg,
  tokenFor,
} from "../../testkit/api/api.ts";
import { insertNode } from "../../testkit/api/replica.ts";
import { newAllocation, type TestOwner } from "../../testkit/api/terminals.ts";
import { openRoles } from "../../testkit/database/database.ts";
import { accessTo, type Caller, callerSql, reaches } from "../src/allocations/access.ts";
import type { Sql } from "../src/database/connect.ts";

const now = new Date("2026-01-01T00:00:00Z");
const later = new Date(now.getTime() + 1);
const [ada, bob, token] = [uuidv7(), uuidv7(), uuidv7()];
const person = (userId: string, administers = false): Caller => ({ userId, tokenId: null, administers });
const machine = (tokenId: string): Caller => ({ userId: null, tokenId, administers: false });
const localOperator: Caller = { userId: null, tokenId: null, administers: true };
const owned = { owner_user_id: ada, owner_token_id: null };

describe("access to an allocation", () => {
  it.for([
    { who: "its owner", caller: person(ada), of: owned, access: "manage" },
    { who: "another member", caller: person(bob), of: owned, access: "none" },
    { who: "an administrator", caller: person(bob, true), of: owned, access: "manage" },
    { who: "the local operator", caller: localOperator, of: owned, access: "manage" },
    { who: "a token without a person", caller: machine(token), of: owned, access: "none" },
    {
      ...{ who: "the token that owns it", caller: machine(token), access: "manage" },
      of: { owner_user_id: null, owner_token_id: token },
    },
    {
      ...{ who: "a member, of one without an owner", caller: person(ada), access: "none" },
      of: { owner_user_id: null, owner_token_id: null },
    },
    {
      ...{ who: "a token, of one without an owner", caller: machine(token), access: "none" },
      of: { owner_user_id: null, owner_token_id: null },
    },
  ])("SEC-01 of $who is $access", ({ caller, of, access }) => {
    expect(accessTo(caller, { ...of, grant: null }, now)).toBe(access);
  });

  it.for(["view", "use"] as const)("SEC-01 by a grant to %s lasts until it expires", (level) => {
    const shared = { ...owned, grant: { level, expires_at: later } };
    expect(accessTo(person(bob), shared, now)).toBe(level);
    expect(accessTo(person(bob), shared, later)).toBe("none");
    expect(accessTo(person(ada), shared, now), "the owner has more").toBe("manage");
  });
});

describe("the same in SQL", () => {
  let api: TestApi;
  let superuser: Sql;
  let kelp: TestOrg;

  beforeAll(async () => {
    api = await startTestApi();
    ({ superuser } = openRoles(api.database));
    kelp = await createOrg(api, "kelp");
  });

  it("SEC-01 decides every combination of caller, owner, grant and time alike", async () => {
    const node = await insertNode(superuser, kelp.id, { name: "reef-1" });
    const people = [
      await addMember(api, kelp, "ada@kelp.example", "member"),
      await addMember(api, kelp, "bob@kelp.example", "member"),
    ].map(({ me }) => me.id ?? "");
    await tokenFor(api, kelp, "member");
    const [stored] = await superuser<{ id: string }[]>`SELECT id FROM api_tokens`;
    const tokenId = stored?.id ?? "";
    const owners: TestOwner[] = [{}, ...people.map((userId) => ({ userId })), { tokenId }];
    const callers = [localOperator, machine(tokenId), ...people.flatMap((id) => [person(id), person(id, true)])];
    const grants = [
      null,
      ...(["view", "use"] as const).flatMap((level) => [
        { level, hours: 1 },
        { level, hours: -1 },
      ]),
    ];
    let compared = 0;
    for (const owner of owners) {
      for (const grant of grants) {
        const { allocationId } = await newAllocation(superuser, kelp, node.id, owner);
        const granteeId = people[1] ?? "";
        if (grant) {
          await superuser`
            INSERT INTO allocation_grants (org_id, allocation_id, grantee_id, level, granted_by, granted_at, expires_at)
            VALUES (${kelp.id}, ${allocationId}, ${granteeId}, ${grant.level}, 'test', now() - interval '2 hours',
              now() + ${grant.hours} * interval '1 hour')`;
        }
        for (const caller of callers) {
          const own =
            grant && caller.userId === granteeId
              ? { level: grant.level, expires_at: new Date(Date.now() + grant.hours * 3_600_000) }
              : null;
          const allocation = {
            owner_user_id: owner.userId ?? null,
            owner_token_id: owner.tokenId ?? null,
          };
          const decided = accessTo(caller, { ...allocation, grant: own }, new Date());
          const who = callerSql(superuser, caller);
          const [row] = await superuser`
            SELECT ${reaches(superuser, who, "view")} IS TRUE AS view, ${reaches(superuser, who, "use")} IS TRUE AS use,
              ${reaches(superuser, who, "manage")} IS TRUE AS manage
            FROM allocations a WHERE a.id = ${allocationId}`;
          const inSql = row?.["manage"] ? "manage" : row?.["use"] ? "use" : row?.["view"] ? "view" : "none";
          expect(inSql, JSON.stringify({ owner, grant, caller })).toBe(decided);
          compared += 1;
        }
      }
    }
    expect(compared).toBe(owners.length * grants.length * callers.length);
  });
});
