// Rotation of the key that signs tasks, as the operator does it: over HTTP, audited, and not twice at once.

import { randomUUID } from "node:crypto";
import { CallError } from "@holdfast/contracts/client";
import { listPlatformAudit } from "@holdfast/contracts/endpoints/audit";
import { listTaskSigningKeys, rotateTaskSigningKey } from "@holdfast/contracts/endpoints/task-signing-keys";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { addMember, createOrg, firstAdmin, startTestApi, type TestApi, tokenFor } from "../../testkit/api/api.ts";
import { enrollTestNode, sendHeartbeatFrom } from "../../testkit/api/nodes.ts";
import { openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";

let api: TestApi;
let superuser: Sql;
const list = async () => (await api.operator()(listTaskSigningKeys, {})).items;
const rotate = () => api.operator()(rotateTaskSigningKey, {});
const HOUR = 3_600_000;

beforeAll(async () => {
  api = await startTestApi();
  ({ superuser } = openRoles(api.database));
});
beforeEach(() => passTwoMinutes());

/** All keys were made longer ago. */
async function passTwoMinutes(): Promise<void> {
  await superuser`
    UPDATE task_signing_keys SET created_at = created_at - interval '2 minutes',
      sign_from = sign_from - interval '2 minutes', verify_until = verify_until - interval '2 minutes'`;
}

async function refusal(work: Promise<unknown>): Promise<CallError["envelope"]> {
  const error = await work.then(
    () => new Error("it was not refused"),
    (reason: unknown) => reason,
  );
  if (error instanceof CallError) return error.envelope;
  throw error;
}

describe("the keys", () => {
  it("TASK-03 are one at first, which signs and has no successor", async () => {
    expect(await list()).toEqual([
      {
        kid: expect.any(String),
        state: "signing",
        created_at: expect.any(String),
        signs_from: expect.any(String),
        verifies_until: null,
      },
    ]);
  });

  it("TASK-03 follow each other: the next one verifies at once and signs in two minutes, the old one verifies for two days", async () => {
    const [before] = await list();
    const { present, next } = await rotate();
    expect(present).toMatchObject({ kid: before?.kid, state: "signing" });
    expect(next).toMatchObject({ state: "next", verifies_until: null });
    expect(Date.parse(next.signs_from) - Date.parse(next.created_at)).toBe(120_000);
    expect(Date.parse(present.verifies_until ?? "") - Date.parse(next.signs_from)).toBe(48 * HOUR);
    expect(await list()).toEqual([next, present]);
    await passTwoMinutes();
    expect((await list()).map(({ kid, state }) => [kid, state])).toEqual([
      [next.kid, "signing"],
      [present.kid, "verifying"],
    ]);
  });

  it("TASK-03 are sent to a node with its next heartbeat, also by another replica", async () => {
    const replica = await startTestApi({ database: api.database });
    const org = await createOrg(api, "receives");
    const node = await enrollTestNode(api, org.id);
    const { next } = await rotate();
    const kids = (await list()).map(({ kid }) => kid);
    const received = async () => {
      const { keys } = (await sendHeartbeatFrom(node)).body["verifiers"] as { keys: { kid: string }[] };
      return keys.map(({ kid }) => kid).sort();
    };
    await expect.poll(received).toEqual(kids.sort());
    // The other replica learns of a key that a node names, and has nothing to correct then.
    const elsewhere = await enrollTestNode(replica, org.id);
    const answer = await sendHeartbeatFrom(elsewhere, { verifier_kids: kids });
    expect(kids).toContain(next.kid);
    expect(answer.body).not.toHaveProperty("verifiers");
    await replica.stop();
  });

  it("TASK-03 do not follow each other before the last rotation is over", async () => {
    const { next } = await rotate();
    const refused = await refusal(rotate());
    expect(refused).toMatchObject({
      code: "key_rotation_too_soon",
      message: expect.stringContaining(next.kid),
      next_step: expect.stringContaining("holdfast key list"),
      details: { not_before: next.signs_from },
    });
    const together = await Promise.allSettled(Array.from({ length: 12 }, rotate));
    expect(together.every(({ status }) => status === "rejected")).toBe(true);
    await passTwoMinutes();
    const again = await Promise.allSettled(Array.from({ length: 12 }, rotate));
    expect(again.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  });

  it("TASK-03 are never more than a node can hold", async () => {
    while ((await list()).length < 16) {
      await rotate();
      await passTwoMinutes();
    }
    const oldest = (await list()).at(-1);
    expect(await refusal(rotate())).toMatchObject({
      code: "key_rotation_too_soon",
      message: expect.stringContaining("16 keys"),
      details: { not_before: oldest?.verifies_until },
    });
    await superuser`UPDATE task_signing_keys SET verify_until = now() WHERE kid = ${oldest?.kid ?? ""}`;
    expect(await list()).toHaveLength(15);
    await rotate();
    await superuser`DELETE FROM task_signing_keys WHERE verify_until IS NOT NULL`;
  });

  it("SEC-03 make one key for one idempotency key, however often it is requested", async () => {
    const idempotencyKey = randomUUID();
    const requests = Array.from({ length: 12 }, () => api.operator()(rotateTaskSigningKey, { idempotencyKey }));
    const kids = (await Promise.all(requests)).map(({ next }) => next.kid);
    expect(new Set(kids).size).toBe(1);
  });
});

describe("whoever rotates", () => {
  it("AUDIT-01 is in the audit, and so is a refusal", async () => {
    const { present, next } = await rotate();
    await refusal(rotate());
    const { items } = await api.operator()(listPlatformAudit, {
      query: { action: "task_signing_key.rotate", limit: 2 },
    });
    expect(items).toMatchObject([
      { result: "failed", reason: "key_rotation_too_soon" },
      {
        result: "allowed",
        actor_type: "local_operator",
        target_type: "task_signing_key",
        target_id: next.kid,
        details: { present: present.kid, signs_from: next.signs_from },
      },
    ]);
  });

  it("SEC-01 is the platform's administrator or the local operator, and nobody else", async () => {
    const org = await createOrg(api, "tenant");
    const owner = await addMember(api, org, "owner@tenant.example", "owner");
    for (const client of [owner.client(org.id), api.as(await tokenFor(api, org, "owner"))]) {
      expect(await refusal(client(rotateTaskSigningKey, {}))).toMatchObject({ code: "forbidden" });
      expect(await refusal(client(listTaskSigningKeys, {}))).toMatchObject({ code: "forbidden" });
    }
    expect(await refusal(api.as("nobody")(listTaskSigningKeys, {}))).toMatchObject({ code: "unauthenticated" });
    const admin = await firstAdmin(api);
    expect(await admin.client()(rotateTaskSigningKey, {})).toMatchObject({ next: { state: "next" } });
  });

  it("SEC-04 gets nothing of a private key", async () => {
    await rotate();
    expect(JSON.stringify(await list())).not.toMatch(/"(d|x|private\w*)"/);
    expect(api.logged()).not.toMatch(/PRIVATE KEY|"d":/);
  });
});
