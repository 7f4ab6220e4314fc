// A steady stream of tasks to nodes anywhere in the fleet, with a look at the api's memory every minute. What was sent is
// counted here, what became of it in the database.

import { setTimeout as pause } from "node:timers/promises";
import { residentKb } from "../processes.ts";
import { type Point, slopeOf } from "../slope.ts";
import type { Installation, StoredTasks } from "./installation.ts";

/** Each node has a task about so often. More often, what is kept of a task shows with a small fleet, within minutes. */
const TASK_EVERY_SECONDS = Number(process.env["HOLDFAST_BENCH_TASK_EVERY_SECONDS"] ?? 60);

/** Seconds of each minute that it lasts: a third of the time. */
const WARM_AFTER = 20;
const COLLECTIONS = 3;
const MB = 1024 * 1024;

export type Soaked = {
  sent: number;
  /** As the producers inside the api saw it. */
  received: number;
  stored: StoredTasks;
  memoryMb: number;
  /** Over the second half: the first fills caches and pools. */
  growthMbPerHour: number;
  /** Objects in use at the end, and how many bytes of them were added for each task since the first third. */
  liveMb: number;
  liveBytesPerTask: number;
};

export async function soakInstallation(
  installation: Installation,
  options: { agents: number; minutes: number; onMinute(line: string): void },
): Promise<Soaked> {
  const { agents, minutes, onMinute } = options;
  const perSecond = Math.ceil(agents / TASK_EVERY_SECONDS);
  const before = await installation.storedTasks();
  const underWay = new Set<Promise<void>>();
  const memory: Point[] = [];
  let sent = 0;
  let received = 0;
  /** Without this garbage, resident memory does not tell a leak from room that V8 and malloc keep. */
  let warm: { sent: number; bytes: number } | undefined;
  const sendSome = async () => {
    const nodeIds = await installation.connectedIds(perSecond);
    if (nodeIds.length === 0) return;
    sent += nodeIds.length;
    const { each } = await installation.run({ nodeIds, atOnce: nodeIds.length });
    received += each.length;
  };
  const look = async (minute: number) => {
    const megabytes = residentKb(installation.apiPid()) / 1024;
    memory.push({ x: minute, y: megabytes });
    const { connected } = await installation.nodes();
    const slope = memory.length > 1 ? `, ${slopeOf(memory).toFixed(2)} MB a minute` : "";
    onMinute(
      `minute ${minute}: ${megabytes.toFixed(1)} MB${slope}; ${connected} connected, ${sent} sent, ${received} received`,
    );
  };

  let started = performance.now();
  await look(0);
  for (let second = 0; second < minutes * 60; second += 1) {
    const some = sendSome().finally(() => underWay.delete(some));
    underWay.add(some);
    // Whoever waits for all of them hears of a failure.
    some.catch(() => undefined);
    await pause(Math.max(0, started + (second + 1) * 1000 - performance.now()));
    if ((second + 1) % 60 === 0) await look((second + 1) / 60);
    // Long before the second half, whose slope counts.
    if (second === minutes * WARM_AFTER) {
      const stopped = performance.now();
      // What tasks under way need is more than what a leak of ended ones adds in minutes.
      await Promise.all(underWay);
      warm = { sent, bytes: await bytesInUse(installation) };
      started += performance.now() - stopped;
    }
  }
  await Promise.all(underWay);
  const live = await bytesInUse(installation);
  const after = await installation.storedTasks();
  return {
    sent,
    received,
    stored: {
      completed: after.completed - before.completed,
      again: after.again - before.again,
      late: after.late - before.late,
    },
    memoryMb: memory.at(-1)?.y ?? 0,
    growthMbPerHour: slopeOf(memory.slice(Math.floor((memory.length - 1) / 2))) * 60,
    liveMb: live / MB,
    liveBytesPerTask: warm ? (live - warm.bytes) / (sent - warm.sent) : 0,
  };
}

/** The least of several looks: a heartbeat may be under way, and some garbage is known as such only after a collection. */
async function bytesInUse(installation: Installation): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let look = 0; look < COLLECTIONS; look += 1) {
    least = Math.min(least, await installation.liveBytes());
    await pause(1000);
  }
  return least;
}
