// The log store of a process of the server. Several processes of a kind may share the directory: each has a folder of its own
// there, which it holds by a lock that ends with it. After a restart it gets the same folder, and still finds its older lines.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Values } from "@holdfast/kit/settings";
import { type LogStore, openLogStore } from "@holdfast/service/log-store/log-store";
import { logStoreSettings } from "@holdfast/service/settings";
import { takeLock } from "../up/lock.ts";

/** More processes of one kind with one directory are not expected. */
const MOST_FOLDERS = 64;

const DAY_MS = 86_400_000;

/** Without a store, `problem` says why: a process never stops for want of one. */
export async function openOwnLogStore(
  name: string,
  { logStoreDir, logStoreMib, logStoreDays }: Values<typeof logStoreSettings>,
): Promise<{ store?: LogStore; problem?: string }> {
  if (logStoreDir === undefined) {
    return { problem: `log lines are not kept: ${logStoreSettings.logStoreDir.env} is not set` };
  }
  try {
    const directory = await takeFolder(logStoreDir, name);
    const limits = { mostBytes: logStoreMib * 1024 * 1024, mostAgeMs: logStoreDays * DAY_MS };
    return { store: openLogStore({ directory, ...limits }) };
  } catch (error) {
    return { problem: `log lines are not kept in ${logStoreDir}: ${(error as Error).message}` };
  }
}

async function takeFolder(directory: string, name: string): Promise<string> {
  for (let number = 1; number <= MOST_FOLDERS; number += 1) {
    const folder = join(directory, number === 1 ? name : `${name}-${number}`);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    if (await takeLock(join(folder, "lock"))) return folder;
  }
  throw new Error(`${MOST_FOLDERS} processes use it already`);
}
