// Deliveries in PostgreSQL: who sends which message, in which order, and what becomes of one whose sender dies.

import { uuidv7 } from "@holdfast/kit/uuid";
import { createLog } from "@holdfast/service/log";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createTestDatabase, openRoles } from "../../testkit/database/database.ts";
import { openFailureAudit } from "../src/audit/failures/failures.ts";
import type { Sql } from "../src/database/connect.ts";
import { openBox } from "../src/mechanisms/sealing/envelope.ts";
import { deliverDue } from "../src/notify/deliveries/deliver.ts";
import { MOST_ATTEMPTS } from "../src/notify/deliveries/retry.ts";

let system: Sql;
let superuser: Sql;
const orgId = uuidv7();
const failures = openFailureAudit(createLog({ process: "test", level: "silent" }), () => 300);
let sent: string[] = [];
let outcome: () => Promise<{ delivered: boolean; answer: string }>;
const accept = async () => ({ delivered: true, answer: "yes" });
const refuse = async () => ({ delivered: false, answer: "no" });

beforeAll(async () => {
  ({ system, superuser } = openRoles(await createTestDatabase()));
  await superuser`INSERT INTO organizations (id, slug, name) VALUES (${orgId}, 'ours', 'Ours')`;
});
beforeEach(async () => {
  sent = [];
  outcome = accept;
  await superuser`DELETE FROM notification_deliveries`;
});

const turn = () =>
  deliverDue({
    ...{
      system,
      failures,
      installation: [],
      vault: { open: () => openBox(Buffer.alloc(32), "", Buffer.of(0)) as never },
    },
    sender: {
      send: (_target, id) => {
        sent.push(id);
        return outcome();
      },
    },
  });

async function newReceiver(): Promise<string> {
  const id = uuidv7();
  await superuser`
    INSERT INTO notification_receivers (id, org_id, kind, address, creator_name)
    VALUES (${id}, ${orgId}, 'mail', ${`${id}@example.com`}, 'test')`;
  return id;
}
async function queue(receiver: string, subject: string = uuidv7(), kind = "mail"): Promise<string> {
  const id = uuidv7();
  await superuser`
    INSERT INTO notification_deliveries (id, org_id, receiver_id, kind, event, subject, message)
    VALUES (${id}, ${orgId}, ${receiver}, ${kind}, 'incident.opened', ${subject}, '{"event": "incident.opened"}')`;
  return id;
}
const due = () => superuser`UPDATE notification_deliveries SET next_attempt_at = now() WHERE state = 'pending'`;
const stateOf = async (id: string) => {
  const [row] = await superuser`SELECT state, attempts, answer FROM notification_deliveries WHERE id = ${id}`;
  return row;
};

describe("a message", () => {
  it("DRIFT-16 is sent by one of several replicas", async () => {
    const ids = await Promise.all(
      (await Promise.all(Array.from({ length: 8 }, newReceiver))).map((one) => queue(one)),
    );
    await Promise.all(Array.from({ length: 4 }, turn));
    expect(sent.toSorted()).toEqual(ids.toSorted());
  });

  it("DRIFT-16 waits for an earlier one about the same subject to the same receiver, and for no other", async () => {
    const [receiver, another] = [await newReceiver(), await newReceiver()];
    const [first, second] = [await queue(receiver, "one"), await queue(receiver, "one")];
    const [other, elsewhere] = [await queue(receiver, "two"), await queue(another, "one")];
    outcome = refuse;
    await turn();
    expect(sent.toSorted()).toEqual([first, other, elsewhere].toSorted());
    outcome = accept;
    await due();
    await turn();
    expect(sent).not.toContain(second);
    await turn();
    expect(sent.at(-1)).toBe(second);
    expect(await stateOf(first)).toMatchObject({ state: "delivered", attempts: 2 });
  });

  it("DRIFT-16 goes on when the earlier one was given up", async () => {
    const receiver = await newReceiver();
    const [first, second] = [await queue(receiver, "one"), await queue(receiver, "one")];
    await superuser`UPDATE notification_deliveries SET attempts = ${MOST_ATTEMPTS - 1} WHERE id = ${first}`;
    outcome = refuse;
    await turn();
    expect(await stateOf(first)).toEqual({ state: "failed", attempts: MOST_ATTEMPTS, answer: "no" });
    await turn();
    expect(sent).toEqual([first, second]);
  });

  it("DRIFT-16 whose sender died is sent again under the same id when the claim ends, and not before", async () => {
    const id = await queue(await newReceiver());
    const dies = Promise.withResolvers<{ delivered: boolean; answer: string }>();
    outcome = () => dies.promise;
    const first = turn();
    await expect.poll(() => sent.length).toBe(1);
    outcome = accept;
    await turn();
    expect(sent).toEqual([id]);
    await due();
    await turn();
    expect(sent).toEqual([id, id]);
    // The first one is alive after all, and too late.
    dies.resolve({ delivered: false, answer: "late" });
    await first;
    expect(await stateOf(id)).toEqual({ state: "delivered", attempts: 2, answer: "yes" });
  });

  it("DRIFT-16 does not wait for those of a receiver that does not respond", async () => {
    const slow = await newReceiver();
    for (let index = 0; index < 60; index += 1) await queue(slow);
    const id = await queue(await newReceiver());
    await turn();
    expect(sent).toHaveLength(3);
    expect(sent).toContain(id);
  });

  it("DRIFT-16 is not sent to a receiver that was removed after it was queued", async () => {
    const receiver = await newReceiver();
    const id = await queue(receiver);
    await superuser`UPDATE notification_receivers SET removed_at = now() WHERE id = ${receiver}`;
    await turn();
    expect(sent).toEqual([]);
    expect(await stateOf(id)).toMatchObject({ state: "cancelled" });
  });

  it("DRIFT-16 that cannot be opened holds up no other", async () => {
    const broken = uuidv7();
    await superuser`
      INSERT INTO notification_receivers (id, org_id, kind, address, sealed, creator_name)
      VALUES (${broken}, ${orgId}, 'webhook', 'https://a', '\\x00', 'test')`;
    const id = await queue(broken, "one", "webhook");
    const other = await queue(await newReceiver());
    await turn();
    expect(sent).toEqual([other]);
    expect(await stateOf(id)).toMatchObject({ state: "pending", answer: "Error: not a sealed box" });
  });

  it("DRIFT-16 to a receiver that was removed while it was sent stays cancelled", async () => {
    const id = await queue(await newReceiver());
    outcome = async () => {
      await superuser`UPDATE notification_deliveries SET state = 'cancelled' WHERE id = ${id}`;
      return { delivered: false, answer: "no" };
    };
    await turn();
    expect(await stateOf(id)).toMatchObject({ state: "cancelled", answer: null });
  });
});
