// holdfast notify test: sends a message for real, and waits for what the receiver returns.

import { setTimeout as pause } from "node:timers/promises";
import type { Client } from "@holdfast/contracts/client";
import {
  type Delivery,
  getDelivery,
  listPlatformDeliveries,
  listReceivers,
  testPlatformReceivers,
  testReceiver,
} from "@holdfast/contracts/endpoints/notify";
import { UsageError } from "@holdfast/kit/settings";
import type { Command } from "commander";
import { clientOf, connect, findServer, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { printResult, table } from "../../output.ts";

type TestOptions = ServerOptions & { installation?: boolean };

/** Longer than the server waits for a receiver. */
const WAIT_MS = 30_000;
const LOOK_EVERY_MS = 250;

export function addTest(command: Command): void {
  withServerOptions(command.command("test"))
    .description("send a test message to a receiver, or to all, and show what it returned")
    .argument("[receiver]", "id; default: all receivers of the organization")
    .option("--installation", "to the receivers that the settings of the installation name (operator only)")
    .action(async (id: string | undefined, { installation, ...options }: TestOptions) => {
      if (installation && id !== undefined) throw new UsageError("--installation takes no receiver.");
      const ended = installation ? await testInstallation(options) : await testReceivers(options, id);
      printResult(options, { items: ended }, describeTests);
      if (ended.some(({ state }) => state !== "delivered")) process.exitCode = 1;
    });
}

async function testReceivers(options: ServerOptions, id: string | undefined): Promise<Delivery[]> {
  const client = await connect(options);
  const ids = id === undefined ? (await client(listReceivers, {})).items.map((one) => one.id) : [id];
  if (ids.length === 0) throw new UsageError("There are no receivers: holdfast notify receiver create");
  const queued = await Promise.all(ids.map((receiver_id) => client(testReceiver, { params: { receiver_id } })));
  return Promise.all(queued.map((one) => outcomeOf(one, () => readOne(client, one.id))));
}

const readOne = (client: Client, delivery_id: string) => client(getDelivery, { params: { delivery_id } });

async function testInstallation(options: ServerOptions): Promise<Delivery[]> {
  const client = clientOf(findServer(options));
  const { items } = await client(testPlatformReceivers, {});
  if (items.length === 0) {
    throw new UsageError(
      "The installation has no receivers: set HOLDFAST_NOTIFY_WEBHOOK_URL or HOLDFAST_NOTIFY_MAIL_TO.",
    );
  }
  const read = async (id: string) =>
    (await client(listPlatformDeliveries, { query: { limit: 200 } })).items.find((one) => one.id === id);
  return Promise.all(items.map((one) => outcomeOf(one, () => read(one.id))));
}

/** As it is at the end, or when nobody waits any longer. */
async function outcomeOf(queued: Delivery, read: () => Promise<Delivery | undefined>): Promise<Delivery> {
  const until = Date.now() + WAIT_MS;
  let last = queued;
  while (last.state === "pending" && Date.now() < until) {
    await pause(LOOK_EVERY_MS);
    last = (await read()) ?? last;
  }
  return last;
}

/** Exported for its test. */
export function describeTests({ items }: { items: readonly Delivery[] }): string {
  return table(items, [
    { title: "receiver", of: ({ address }) => address },
    { title: "state", of: ({ state }) => (state === "pending" ? "not sent yet" : state) },
    { title: "answer", of: ({ answer }) => answer },
    { title: "delivery", of: ({ id }) => id },
  ]);
}
