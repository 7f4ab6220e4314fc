// Incidents of severity P0 and those that require security action leave the product: to whom, how often, and what is kept.

import { listAudit } from "@holdfast/contracts/endpoints/audit";
import {
  createReceiver,
  type Delivery,
  getDelivery,
  listDeliveries,
  listPlatformDeliveries,
  listReceivers,
  removeReceiver,
  testPlatformReceivers,
  testReceiver,
} from "@holdfast/contracts/endpoints/notify";
import type { Notification } from "@holdfast/contracts/public/notification";
import { uuidv7 } from "@holdfast/kit/uuid";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg, tokenFor } from "../../testkit/api/api.ts";
import { classifyWhatIsDue } from "../../testkit/api/evidence.ts";
import { openRoles } from "../../testkit/database/database.ts";
import { startWebhookServer, type WebhookServer } from "../../testkit/receivers/webhook-server.ts";
import type { Sql } from "../src/database/connect.ts";
import { relateIncidents } from "../src/drift/common-cause/relate.ts";
import { recordObservations } from "../src/drift/evidence/write.ts";
import { defaultCommonCausePolicy, defaultPolicy } from "../src/drift/policy.ts";
import { announceIncidents } from "../src/notify/announce/announce.ts";
import { GATHER_MS, HOLD_MS } from "../src/notify/announce/plan.ts";
import { removeOldDeliveries } from "../src/notify/deliveries/remove-old.ts";
import { type MailServer, startMailServer } from "./support/mail-server.ts";

let api: TestApi;
let org: TestOrg;
let system: Sql;
let superuser: Sql;
let server: WebhookServer;
let own: WebhookServer;
let mail: MailServer;
let count = 0;

beforeAll(async () => {
  [server, own, mail] = await Promise.all([startWebhookServer(), startWebhookServer(), startMailServer()]);
  api = await startTestApi({
    env: {
      ...{ HOLDFAST_NOTIFY_ALLOW_PRIVATE: "127.0.0.1", HOLDFAST_PUBLIC_URL: "http://127.0.0.1:3001" },
      ...{ HOLDFAST_NOTIFY_WEBHOOK_URL: own.url, HOLDFAST_NOTIFY_WEBHOOK_SECRET: "of the installation itself" },
      ...{ HOLDFAST_SMTP_HOST: "127.0.0.1", HOLDFAST_SMTP_PORT: String(mail.port), HOLDFAST_SMTP_TLS: "none" },
      HOLDFAST_NOTIFY_MAIL_FROM: "holdfast@example.com",
    },
  });
  ({ system, superuser } = openRoles(api.database));
});
beforeEach(async () => {
  count += 1;
  org = await createOrg(api, `notified-${count}`);
});
afterEach(() => {
  server.answer = (response) => response.end();
  for (const one of [server, own]) one.received = [];
  mail.mails = [];
});

const webhookOf = () => api.operator(org.id)(createReceiver, { body: { url: server.url } });
const deliveries = async () => (await api.operator(org.id)(listDeliveries, { query: { limit: 200 } })).items;
const messages = (from: WebhookServer): (Notification & { id: string })[] =>
  from.received.map(({ body }) => JSON.parse(body) as Notification & { id: string });
const ofOrg = (all: readonly (Notification & { id: string })[]) =>
  all.filter(({ organization }) => organization?.id === org.id);

async function nodesOf(size: number, agentVersion = "1"): Promise<string[]> {
  const ids = Array.from({ length: size }, () => uuidv7());
  await superuser`
    INSERT INTO nodes (id, org_id, name, status)
    SELECT id, ${org.id}, 'node-' || id, 'active' FROM unnest(${ids}::uuid[]) AS id`;
  await superuser`
    INSERT INTO node_certificates (serial, org_id, node_id, key_sha256, chain, issued_for, not_before, not_after)
    SELECT replace(id::text, '-', ''), ${org.id}, id, decode(replace(id::text, '-', ''), 'hex'), '', 'enrollment',
           now(), now() + interval '1 day'
    FROM unnest(${ids}::uuid[]) AS id`;
  await superuser`
    INSERT INTO node_presence (node_id, org_id, heartbeat_at, instance_id, boot_id, clock_skew_ms, heartbeat, attributes)
    SELECT id, ${org.id}, now(), id, 'boot', 0,
           json_build_object('certificate', json_build_object('serial', replace(id::text, '-', ''))), json_build_object('agent_version', ${agentVersion}::text)
    FROM unnest(${ids}::uuid[]) AS id`;
  return ids;
}
const observe = (ids: readonly string[], value: "one" | "two_or_more") =>
  recordObservations(
    system,
    ids.map((nodeId) => ({
      ...{ nodeId, kind: "instances", value, observer: "control_plane", observedAt: new Date() },
    })),
  );
/** Only one is left, and it has done since what proves that a node has recovered. */
async function haveRecovered(ids: readonly string[]): Promise<void> {
  await observe(ids, "one");
  await superuser`
    UPDATE node_presence SET heartbeat_at = clock_timestamp() WHERE node_id = ANY (${ids as string[]}::uuid[])`;
  await recordObservations(
    system,
    ids.map((nodeId) => ({
      ...{ nodeId, kind: "task", value: "completed", observer: "agent", observedAt: new Date() },
      detail: { instance_id: nodeId },
    })),
  );
}
/** What the worker does turn after turn, until every incident was compared. */
async function look(): Promise<void> {
  await classifyWhatIsDue(system, defaultPolicy);
  for (;;) {
    await relateIncidents(system, defaultCommonCausePolicy);
    if ((await superuser`SELECT FROM incidents WHERE NOT compared`).length === 0) return;
  }
}
/** The api does the same by itself, at the present time: what it has announced is not announced again. */
async function announce(laterMs: number): Promise<void> {
  const options = { installation: ["webhook"] as const, publicUrl: undefined };
  await announceIncidents(system, { ...options, now: new Date(Date.now() + laterMs) });
}
const announcedOf = async (ids: readonly string[]) =>
  (
    await superuser<{ announced: string }[]>`
      SELECT DISTINCT announced FROM incidents WHERE node_id = ANY (${ids as string[]}::uuid[])`
  ).map(({ announced }) => announced);

describe("a node with a cloned identity", () => {
  it("DRIFT-16 is announced once when it is found and once when it is over, to all receivers", async () => {
    await webhookOf();
    await api.operator(org.id)(createReceiver, { body: { mail: "Ops@Example.com" } });
    const [id = ""] = await nodesOf(1);
    await observe([id], "two_or_more");
    await look();
    await announce(0);
    expect(await announcedOf([id])).toEqual(["nothing"]);
    await expect
      .poll(async () => {
        await announce(HOLD_MS);
        return announcedOf([id]);
      })
      .toEqual(["opened"]);
    await announce(10 * HOLD_MS);
    await expect.poll(() => ofOrg(messages(server))).toHaveLength(1);
    await haveRecovered([id]);
    await look();
    await expect
      .poll(async () => {
        await announce(HOLD_MS);
        return announcedOf([id]);
      })
      .toEqual(["recovered"]);
    await announce(10 * HOLD_MS);
    await expect.poll(() => ofOrg(messages(server))).toHaveLength(2);
    await expect.poll(() => mail.mails.length).toBe(2);
    await expect.poll(() => ofOrg(messages(own))).toHaveLength(2);

    const [opened, recovered] = ofOrg(messages(server));
    expect(opened).toMatchObject({
      ...{ event: "incident.opened", severity: "P0", reason: "cloned_identity_detected", node_count: 1 },
      ...{ user_state: "security_action_required", nodes: [{ id, name: `node-${id}` }] },
      organization: { id: org.id, slug: org.slug },
    });
    expect(recovered).toMatchObject({ event: "incident.recovered", incident_id: opened?.incident_id });
    expect(Date.parse(recovered?.recovered_at ?? "")).toBeGreaterThanOrEqual(Date.parse(opened?.began_at ?? ""));
    expect(mail.mails.map(({ to }) => to)).toEqual([["ops@example.com"], ["ops@example.com"]]);
    // The receiver has a message before its answer is stored.
    const delivered = expect.objectContaining({ state: "delivered", attempts: 1, severity: "P0" }) as Delivery;
    await expect.poll(deliveries).toEqual([delivered, delivered, delivered, delivered]);
    const stored = await deliveries();
    expect(new Set(ofOrg(messages(server)).map((one) => one.id))).toEqual(
      new Set(stored.filter(({ kind }) => kind === "webhook").map((one) => one.id)),
    );
  });

  it("DRIFT-16 that was over before anything was sent is one message", async () => {
    await webhookOf();
    const [id = ""] = await nodesOf(1);
    await observe([id], "two_or_more");
    await look();
    await haveRecovered([id]);
    await look();
    await expect
      .poll(async () => {
        await announce(0);
        return announcedOf([id]);
      })
      .toEqual(["recovered"]);
    await expect.poll(() => ofOrg(messages(server)).map(({ event }) => event)).toEqual(["incident.recovered"]);
  });
});

describe("many nodes", () => {
  it("DRIFT-16 with one cause are one message when it begins and one when it is over", async () => {
    await webhookOf();
    const [ids] = [await nodesOf(40, "2"), await nodesOf(90, "1")];
    await observe(ids, "two_or_more");
    await look();
    await announce(HOLD_MS);
    await expect.poll(() => ofOrg(messages(server))).toMatchObject([{ event: "incident.opened", node_count: 40 }]);
    expect(ofOrg(messages(server))[0]?.text).toContain("with agent version 2");
    // To the installation, it is one of the platform.
    await expect
      .poll(() => messages(own).filter(({ text }) => text.includes("with agent version 2")))
      .toMatchObject([{ organization: null, node_count: 40 }]);
    await haveRecovered(ids);
    await look();
    await announce(HOLD_MS);
    await expect.poll(() => ofOrg(messages(server))).toHaveLength(2);
    expect(await announcedOf(ids)).toEqual(["nothing"]);
  });

  it("DRIFT-16 with one reason and nothing in common are gathered", async () => {
    await webhookOf();
    const ids = (await Promise.all([nodesOf(1, "a"), nodesOf(1, "b"), nodesOf(9, "c")])).map(([id = ""]) => id);
    await observe(ids.slice(0, 2), "two_or_more");
    await look();
    await expect
      .poll(async () => {
        await announce(HOLD_MS);
        return announcedOf(ids.slice(0, 2));
      })
      .toEqual(["opened"]);
    await observe(ids.slice(2), "two_or_more");
    await look();
    await announce(HOLD_MS);
    expect(await announcedOf(ids.slice(2))).toEqual(["nothing"]);
    await expect
      .poll(async () => {
        await announce(GATHER_MS + HOLD_MS);
        return announcedOf(ids.slice(2));
      })
      .toEqual(["opened"]);
    await expect.poll(() => ofOrg(messages(server)).map(({ node_count }) => node_count)).toEqual([2, 1]);
  });

  it("DRIFT-16 are announced by one of several replicas", async () => {
    await webhookOf();
    const [id = ""] = await nodesOf(1);
    await observe([id], "two_or_more");
    await look();
    await expect
      .poll(async () => {
        await Promise.all(Array.from({ length: 4 }, () => announce(HOLD_MS)));
        return announcedOf([id]);
      })
      .toEqual(["opened"]);
    expect(await deliveries()).toHaveLength(1);
  });
});

describe("a receiver that does not accept a message", () => {
  it("DRIFT-16 AUDIT-02 gets it again under the same id, and the audit has the first failure and the recovery", async () => {
    const { id } = await webhookOf();
    server.answer = (response) => response.writeHead(503).end("later");
    const { id: delivery } = await queue(id);
    const failed = await read(delivery, ({ answer }) => answer !== null);
    expect(failed).toMatchObject({ state: "pending", answer: "503 later", delivered_at: null });
    expect(Date.parse(failed.next_attempt_at ?? "") - Date.parse(failed.attempted_at ?? "")).toBeLessThan(30_000);
    await superuser`UPDATE notification_deliveries SET next_attempt_at = now() WHERE id = ${delivery}`;
    await read(delivery, ({ attempts, answer, next_attempt_at }) => {
      return attempts === 2 && answer !== null && Date.parse(next_attempt_at ?? "") - Date.now() < 60_000;
    });
    server.answer = (response) => response.end("ok");
    await superuser`UPDATE notification_deliveries SET next_attempt_at = now() WHERE id = ${delivery}`;
    expect(await read(delivery, ({ state }) => state === "delivered")).toMatchObject({ answer: "200 ok" });
    const attempts = server.received.filter(({ headers }) => headers["x-holdfast-delivery"] === delivery);
    expect(attempts).toHaveLength(3);
    expect(new Set(attempts.map(({ body }) => body)).size).toBe(1);
    const { items } = await api.operator(org.id)(listAudit, { query: { action: "receiver.deliver" } });
    expect(items).toMatchObject([
      { result: "allowed", target_id: id, details: { recovered: true, reason: "delivery_failed", count: 2 } },
      { result: "failed", reason: "delivery_failed", target_id: id, details: { answer: "503 later" } },
    ]);
  });

  /** As an announcement does. */
  async function queue(receiverId: string, subject = uuidv7()): Promise<{ id: string }> {
    const id = uuidv7();
    await superuser`
      INSERT INTO notification_deliveries (id, org_id, receiver_id, kind, event, subject, message)
      VALUES (${id}, ${org.id}, ${receiverId}, 'webhook', 'incident.opened', ${subject},
        ${JSON.stringify({ event: "incident.opened", title: "A title", severity: "P0", incident_id: null })}::text::json)`;
    return { id };
  }
  async function read(id: string, until: (delivery: Delivery) => boolean): Promise<Delivery> {
    let found: Delivery | undefined;
    await expect
      .poll(async () => {
        found = await api.operator(org.id)(getDelivery, { params: { delivery_id: id } });
        return until(found);
      })
      .toBe(true);
    if (!found) throw new Error("never");
    return found;
  }
});

describe("receivers over HTTP", () => {
  it("DRIFT-16 SEC-03 are created by owners, and their secret is shown once", async () => {
    const created = await webhookOf();
    expect(created).toMatchObject({ kind: "webhook", address: `http://127.0.0.1:${server.port}/…` });
    expect(created.secret).toMatch(/^hfw_[\w-]{43}$/);
    const { items } = await api.operator(org.id)(listReceivers, {});
    expect(items.map(({ id }) => id)).toEqual([created.id]);
    const stored = JSON.stringify([
      items,
      await superuser`SELECT *, encode(sealed, 'escape') AS text FROM notification_receivers WHERE org_id = ${org.id}`,
      await superuser`SELECT * FROM audit_events WHERE org_id = ${org.id}`,
      api.logged(),
    ]);
    for (const hidden of [created.secret ?? "", "secret-path"]) expect(stored).not.toContain(hidden);
    const admin = api.as(await tokenFor(api, org, "admin"));
    expect((await admin(listReceivers, {})).items).toHaveLength(1);
    const refused = { envelope: { code: "forbidden" } };
    await expect(admin(createReceiver, { body: { url: server.url } })).rejects.toMatchObject(refused);
    await expect(admin(testReceiver, { params: { receiver_id: created.id } })).rejects.toMatchObject(refused);
    const member = api.as(await tokenFor(api, org, "member"));
    await expect(member(listReceivers, {})).rejects.toMatchObject(refused);
    await expect(member(listDeliveries, {})).rejects.toMatchObject(refused);
  });

  it.for([
    "http://169.254.169.254/latest/meta-data",
    "https://[::1]/",
    "http://127.0.0.2/",
    "ftp://x",
    "https://a:b@x/",
  ])("SEC-04 are not at %s", async (url) => {
    await expect(api.operator(org.id)(createReceiver, { body: { url } })).rejects.toMatchObject({
      envelope: { code: "receiver_address_refused" },
    });
  });

  it("DRIFT-16 are tested for real, with the receiver's answer", async () => {
    const { id } = await webhookOf();
    server.answer = (response) => response.writeHead(418).end("short and stout");
    const { id: first, state } = await api.operator(org.id)(testReceiver, { params: { receiver_id: id } });
    expect(state).toBe("pending");
    const ended = (delivery: string) =>
      expect
        .poll(async () => api.operator(org.id)(getDelivery, { params: { delivery_id: delivery } }))
        .toMatchObject({ attempts: 1, state: expect.not.stringMatching("pending") as string });
    await ended(first);
    server.answer = (response) => response.end("got it");
    const { id: second } = await api.operator(org.id)(testReceiver, { params: { receiver_id: id } });
    await ended(second);
    expect((await deliveries()).map(({ event, answer, state }) => [event, state, answer])).toEqual([
      ["receiver.test", "delivered", "200 got it"],
      ["receiver.test", "failed", "418 short and stout"],
    ]);
    const { items } = await api.operator()(testPlatformReceivers, {});
    await expect
      .poll(async () =>
        (await api.operator()(listPlatformDeliveries, {})).items.find((one) => one.id === items[0]?.id),
      )
      .toMatchObject({ state: "delivered", receiver_id: null });
  });

  it("DRIFT-16 that are removed get nothing more, and their history stays", async () => {
    const { id } = await webhookOf();
    await superuser`
      INSERT INTO notification_deliveries (id, org_id, receiver_id, kind, event, subject, message, next_attempt_at)
      VALUES (${uuidv7()}, ${org.id}, ${id}, 'webhook', 'incident.opened', 's',
        '{"event": "incident.opened", "title": "T", "severity": null, "incident_id": null}', now() + interval '1 hour')`;
    await api.operator(org.id)(removeReceiver, { params: { receiver_id: id } });
    await expect(api.operator(org.id)(removeReceiver, { params: { receiver_id: id } })).rejects.toMatchObject({
      envelope: { code: "not_found" },
    });
    expect((await api.operator(org.id)(listReceivers, {})).items).toEqual([]);
    expect(await deliveries()).toMatchObject([{ state: "cancelled", receiver_id: id, next_attempt_at: null }]);
    const [row] = await superuser`SELECT sealed FROM notification_receivers WHERE id = ${id}`;
    expect(row?.["sealed"]).toBeNull();
    await superuser`
      UPDATE notification_deliveries SET created_at = now() - interval '91 days' WHERE receiver_id = ${id}`;
    await superuser`
      UPDATE notification_receivers SET removed_at = now() - interval '91 days' WHERE id = ${id}`;
    expect(await removeOldDeliveries(system, { days: 90 })).toBe(1);
    expect(await superuser`SELECT FROM notification_receivers WHERE id = ${id}`).toHaveLength(0);
  });

  it("DRIFT-16 are limited, and a mail address is one only once", async () => {
    const create = (mailTo: string) => api.operator(org.id)(createReceiver, { body: { mail: mailTo } });
    await create("ops@example.com");
    await expect(create("OPS@example.com")).rejects.toMatchObject({ envelope: { code: "name_taken" } });
    for (let index = 1; index < 20; index += 1) await create(`ops-${index}@example.com`);
    await expect(create("one-more@example.com")).rejects.toMatchObject({ envelope: { code: "conflict" } });
    await expect(api.operator(org.id)(createReceiver, { body: {} })).rejects.toMatchObject({
      envelope: { code: "invalid_request" },
    });
  });
});
