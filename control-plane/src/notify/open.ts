// What an api process has for messages: how to send, to whom without the database, and what it watches.

import type { Values } from "@holdfast/kit/settings";
import type { Log } from "@holdfast/service/log";
import type { Metrics } from "@holdfast/service/metrics";
import type { Sql } from "../database/connect.ts";
import type { Keyring } from "../mechanisms/sealing/keyring.ts";
import type { Signals } from "../mechanisms/signals.ts";
import { type Deadman, measureDeadman } from "./deadman/ping.ts";
import { type DatabaseWatch, watchDatabase } from "./outage/watch.ts";
import { createReceiverCache, type ReceiverCache } from "./receivers/cache.ts";
import { type InstallationReceiver, installationReceivers } from "./receivers/installation.ts";
import { createReceiverVault, type ReceiverVault } from "./receivers/vault.ts";
import { createSender, type Sender } from "./send/sender.ts";
import type { notifySettings } from "./settings.ts";

export type Notify = {
  sender: Sender;
  vault: ReceiverVault;
  installation: readonly InstallationReceiver[];
  cache: ReceiverCache;
  watch: DatabaseWatch;
  deadman: Deadman;
};

export async function openNotify(options: {
  settings: Values<typeof notifySettings> & { publicUrl: string | undefined };
  system: Sql;
  /** A connection of its own: a busy pool is not an unreachable database. */
  probe: Sql;
  keyring: Keyring;
  signals: Signals;
  metrics: Metrics;
  log: Log;
}): Promise<Notify> {
  const { settings, system, probe, signals, metrics, log } = options;
  const sender = createSender(settings);
  const installation = installationReceivers(settings);
  const vault = await createReceiverVault(options.keyring);
  const cache = createReceiverCache({ system, vault, installation });
  await cache.refresh();
  const watch = watchDatabase({
    ...{ system, sender, receivers: cache.all, publicUrl: settings.publicUrl, log },
    probe: () => probe`SELECT`,
    onQueued: (ids) => signals.publish("delivery", ids),
  });
  const deadman: Deadman = {};
  if (settings.deadmanUrl !== undefined) measureDeadman(metrics, deadman);
  return { sender, vault, installation, cache, watch, deadman };
}
