// A database that cannot be reached: the api reports it without the database, and records it afterwards.

import { createReceiver, listDeliveries, listPlatformDeliveries } from "@holdfast/contracts/endpoints/notify";
import type { Notification } from "@holdfast/contracts/public/notification";
import { beforeAll, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import { quiet } from "../../testkit/api/replica.ts";
import {
  createTestDatabase,
  openRoles,
  setReachable,
  type TestDatabase,
} from "../../testkit/database/database.ts";
import { startWebhookServer, type WebhookServer } from "../../testkit/receivers/webhook-server.ts";
import { DOWN_AFTER_MS } from "../src/notify/outage/outage.ts";
import { watchDatabase } from "../src/notify/outage/watch.ts";
import type { Target } from "../src/notify/send/sender.ts";

let api: TestApi;
let org: TestOrg;
let database: TestDatabase;
let own: WebhookServer;
let server: WebhookServer;

beforeAll(async () => {
  [own, server] = await Promise.all([startWebhookServer(), startWebhookServer()]);
  database = await createTestDatabase();
});

const eventsOf = (receiver: WebhookServer) =>
  receiver.received.map(({ body }) => JSON.parse(body) as Notification & { id: string });

it("DRIFT-16 is reported by the api itself, once, and recorded when it is over", async () => {
  api = await startTestApi({
    database,
    env: {
      ...{ HOLDFAST_NOTIFY_WEBHOOK_URL: own.url, HOLDFAST_NOTIFY_WEBHOOK_SECRET: "of the installation itself" },
      HOLDFAST_NOTIFY_ALLOW_PRIVATE: "127.0.0.1",
    },
  });
  org = await createOrg(api, "ours");
  await api.operator(org.id)(createReceiver, { body: { url: server.url } });
  await setReachable(database, false);
  await expect.poll(() => eventsOf(own).map(({ event }) => event)).toEqual(["database.unreachable"]);
  await setReachable(database, true);
  const both = ["database.unreachable", "database.recovered"];
  await expect.poll(() => eventsOf(own).map(({ event }) => event)).toEqual(both);
  expect(eventsOf(own)[0]).toMatchObject({ severity: "P0", organization: null, next_action: "fix_control_plane" });
  await expect
    .poll(async () => {
      const { items } = await api.operator()(listPlatformDeliveries, {});
      return items.toReversed().map(({ event, state }) => [event, state]);
    })
    .toEqual(both.map((event) => [event, "delivered"]));
  await expect.poll(() => eventsOf(server).map(({ event }) => event)).toEqual(both);
  const { items } = await api.operator(org.id)(listDeliveries, {});
  expect(items.map(({ id }) => id).toSorted()).toEqual(
    eventsOf(server)
      .map(({ id }) => id)
      .toSorted(),
  );
});

it("DRIFT-16 goes to the receivers that were known, under one id in all replicas; what was not accepted is sent later", async () => {
  const { system, superuser } = openRoles(await createTestDatabase());
  let now = Date.parse("2026-01-01T10:00:30Z");
  let reachable = true;
  const sent: { replica: number; id: string; to: string }[] = [];
  const known = ["webhook", "mail"].map((kind) => ({ key: `installation ${kind}`, receiver: null }));
  const targets: Target[] = [
    { kind: "webhook", url: "https://a/", secret: "s" },
    { kind: "mail", to: "a@example.com" },
  ];
  const replica = (index: number) =>
    watchDatabase({
      ...{ system, publicUrl: undefined, log: quiet, now: () => now, onQueued: () => undefined },
      probe: async () => {
        if (!reachable) throw new Error("gone");
      },
      receivers: () =>
        known.map((one, place) => ({ ...one, target: targets[place] ?? targets[0] ?? ({} as Target) })),
      sender: {
        send: async (target, id) => {
          sent.push({ replica: index, id, to: target.kind });
          return { delivered: target.kind === "webhook", answer: "answer" };
        },
      },
    });
  const replicas = [replica(0), replica(1)];
  const look = async (laterMs: number) => {
    now += laterMs;
    for (const one of replicas) {
      await one.look();
      now += 50;
    }
  };
  await look(0);
  reachable = false;
  await look(1_000);
  await look(DOWN_AFTER_MS - 200);
  expect(sent).toEqual([]);
  await look(200);
  expect(sent.map(({ to }) => to)).toEqual(["webhook", "mail", "webhook", "mail"]);
  expect(new Set(sent.map(({ id }) => id)).size).toBe(2);
  // Only what was not accepted is tried again, after a pause.
  await look(1_000);
  expect(sent).toHaveLength(4);
  await look(5_000);
  expect(sent.slice(4).map(({ to }) => to)).toEqual(["mail", "mail"]);
  reachable = true;
  await look(1_000);
  await look(1_000);
  const rows = await superuser`
    SELECT event, kind, state, attempts FROM notification_deliveries ORDER BY id, kind`;
  expect(rows.map(({ event, kind, state }) => `${event} ${kind} ${state}`).toSorted()).toEqual([
    "database.recovered mail pending",
    "database.recovered webhook pending",
    "database.unreachable mail pending",
    "database.unreachable webhook delivered",
  ]);
});
