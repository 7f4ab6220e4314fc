// What every kind of bindings owes, in memory and in Redis, and what only those in Redis can do: be seen by another
// gateway, and be lost and found again.

import { createLog } from "@holdfast/service/log";
import { beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import { startTestRedis, type TestRedis } from "../../testkit/redis/redis.ts";
import {
  type Bindings,
  BindingsUnreachable,
  type Lost,
  memoryBindings,
  type Owner,
} from "../src/bindings/bindings.ts";
import { redisBindings } from "../src/bindings/redis.ts";

const without = lacks("redis");
const log = createLog({ process: "test", level: "silent" });
const RENEW_MS = 100;
let redis: TestRedis;
let made = 0;

type Gateway = Bindings & { self: Owner; lost: [string, Lost][] };

/** A gateway's bindings in Redis, once they are reachable. */
async function inRedis(options: { renewMs?: number } = {}): Promise<Gateway> {
  made += 1;
  const self = { id: `gateway-${made}`, url: `https://gateway-${made}:18443` };
  const lost: [string, Lost][] = [];
  const bindings = redisBindings({
    ...{ url: redis.url, self: () => self, log, renewMs: RENEW_MS, ...options },
    onLost: (id, why) => lost.push([id, why]),
  });
  atEnd(() => bindings.stop());
  await expect.poll(bindings.isReachable).toBe(true);
  return { ...bindings, self, lost };
}

function inMemory(): Gateway {
  const self = { id: "gateway-0", url: "https://gateway-0:18443" };
  return { ...memoryBindings(() => self), self, lost: [] };
}

let ids = 0;
const anId = () => {
  ids += 1;
  return `session-${ids}`;
};

beforeAll(async () => {
  if (!without) redis = await startTestRedis();
});

describe.for([
  ["in memory", async () => inMemory()],
  ["in Redis", () => inRedis()],
] as const)("bindings %s", ([kind, open]) => {
  const missing = kind === "in Redis" && without;

  it.skipIf(missing)("TERM-07 say who has a terminal, from when it is taken until it is released", async () => {
    const bindings = await open();
    for (const take of [bindings.take, bindings.takeOver]) {
      const id = anId();
      expect(await bindings.ownerOf(id)).toBeUndefined();
      expect(bindings.isPublished(id)).toBe(false);
      await take(id);
      expect(await bindings.ownerOf(id)).toMatchObject(bindings.self);
      expect(bindings.isPublished(id)).toBe(true);
      expect(bindings.size()).toBe(1);
      await bindings.release(id);
      expect(await bindings.ownerOf(id)).toBeUndefined();
      expect(bindings.size()).toBe(0);
    }
  });

  it.skipIf(missing)("TERM-07 are the same when they are taken or released twice", async () => {
    const bindings = await open();
    const id = anId();
    expect(await bindings.take(id)).toMatchObject(bindings.self);
    expect(await bindings.take(id)).toMatchObject(bindings.self);
    await bindings.takeOver(id);
    expect(bindings.size()).toBe(1);
    await bindings.release(id);
    await bindings.release(id);
    expect(await bindings.ownerOf(id)).toBeUndefined();
    expect(bindings.lost).toEqual([]);
  });
});

describe.skipIf(without)("bindings of two gateways in Redis", () => {
  it("TERM-07 of two streams at once one gateway wins, and both know which", async () => {
    const [a, b] = [await inRedis(), await inRedis()];
    const id = anId();
    const [first, second] = await Promise.all([a.take(id), b.take(id)]);
    expect(first.id).toBe(second.id);
    expect([a, b].map((one) => one.size()).sort()).toEqual([0, 1]);
  });

  it("TERM-07 a client takes a terminal over, and the gateway that had it learns that without a renewal", async () => {
    const [a, b] = [await inRedis({ renewMs: 3_600_000 }), await inRedis({ renewMs: 3_600_000 })];
    const id = anId();
    await a.takeOver(id);
    await b.takeOver(id);
    expect(await a.ownerOf(id)).toMatchObject(b.self);
    await expect.poll(() => a.lost).toEqual([[id, "taken_over"]]);
    // What it lost is not its own to release.
    await a.release(id);
    expect(await a.ownerOf(id)).toMatchObject(b.self);
    expect(b.lost).toEqual([]);
  });

  it("TERM-07 releases only what is its own, also if it has not heard yet that it lost it", async () => {
    const [a, b] = [await inRedis({ renewMs: 3_600_000 }), await inRedis()];
    const [own, its] = [anId(), anId()];
    await a.takeOver(own);
    await b.takeOver(its);
    const all = await redis.content();
    const [key] = Object.keys(all).filter((one) => one.endsWith(own));
    const [taken = ""] = Object.entries(all).flatMap(([one, value]) => (one.endsWith(its) ? [value] : []));
    await redis.set(key ?? "", taken);
    await a.release(own);
    expect(await a.ownerOf(own)).toMatchObject(b.self);
  });

  it("TERM-07 keeps a terminal that it took back before it heard that it was taken over", async () => {
    const [a, b] = [await inRedis(), await inRedis()];
    const id = anId();
    await a.takeOver(id);
    await Promise.all([b.takeOver(id), a.takeOver(id)]);
    const owner = await a.ownerOf(id);
    const [winner, other] = owner?.id === a.self.id ? [a, b] : [b, a];
    await expect.poll(() => other.lost).toEqual([[id, "taken_over"]]);
    expect(winner.lost).toEqual([]);
  });

  it("TERM-07 keeps a terminal that it took back while it asked about the take-over", async () => {
    const [a, b] = [await inRedis({ renewMs: 3_600_000 }), await inRedis({ renewMs: 3_600_000 })];
    let onTakenOver = (_id: string) => {};
    await redis.follow("holdfast:terminals:taken-over", (id) => onTakenOver(id));
    // Its question about the take-over is under way in most of these when it takes the terminal back.
    for (let round = 0; round < 20; round += 1) {
      const id = anId();
      const back = Promise.withResolvers<number>();
      let news = 0;
      onTakenOver = (taken) => {
        // The first is about its own taking over.
        if (taken === id) news += 1;
        if (taken !== id || news !== 2) return;
        const before = a.lost.length;
        a.takeOver(id).then(() => back.resolve(before), back.reject);
      };
      await a.takeOver(id);
      await b.takeOver(id);
      const before = await back.promise;
      // Whatever was asked before is answered before this.
      expect(await a.ownerOf(id)).toMatchObject(a.self);
      expect([a.isPublished(id), a.lost.length]).toEqual([true, before]);
    }
  });

  it("TERM-07 a gateway that was killed has nothing for long: what nobody renews expires", async () => {
    const [a] = [await inRedis()];
    const id = anId();
    await a.takeOver(id);
    const values = Object.entries(await redis.content()).filter(([key]) => key.endsWith(id));
    expect(values).toHaveLength(1);
    expect(await redis.expiryMs(values[0]?.[0] ?? "")).toBeGreaterThan(0);
  });

  it("TERM-07 the owner publishes again what a flush removed, and loses it to whoever was faster", async () => {
    const [a, b] = [await inRedis(), await inRedis({ renewMs: 3_600_000 })];
    const [kept, raced] = [anId(), anId()];
    await a.takeOver(kept);
    await b.takeOver(raced);
    await redis.flush();
    await expect.poll(() => a.ownerOf(kept)).toMatchObject(a.self);
    expect(await a.take(raced)).toMatchObject(a.self);
    // What reconnects its client and its connections at once.
    await redis.dropConnections();
    await expect.poll(() => b.lost).toEqual([[raced, "elsewhere"]]);
  });
});

describe.skipIf(without)("bindings while Redis is lost", () => {
  it.for([
    ["stopped", (one: TestRedis) => one.stop(), (one: TestRedis) => one.start()],
    ["frozen", async (one: TestRedis) => one.freeze(), async (one: TestRedis) => one.thaw()],
  ] as const)(
    "TERM-07 answer at once that it is unreachable, and are back by themselves: %s",
    async ([, lose, back]) => {
      const bindings = await inRedis();
      const [before, during, streams] = [anId(), anId(), anId()];
      await bindings.takeOver(before);
      await lose(redis);
      await expect.poll(bindings.isReachable).toBe(false);
      // Known already: no answer is waited for, which would take many turns.
      const refused = bindings.ownerOf(before).catch((error: unknown) => error);
      const turn = new Promise((resolve) => setImmediate(resolve, "it waits"));
      expect(await Promise.race([refused, turn])).toBeInstanceOf(BindingsUnreachable);
      await expect(bindings.takeOver(during)).rejects.toThrow(BindingsUnreachable);
      await expect(bindings.take(streams)).rejects.toThrow(BindingsUnreachable);
      expect(bindings.isPublished(during)).toBe(false);
      expect(bindings.size()).toBe(3);
      await back(redis);
      await expect.poll(bindings.isReachable, { timeout: 20_000 }).toBe(true);
      for (const id of [before, during, streams]) {
        await expect.poll(() => bindings.isPublished(id)).toBe(true);
        expect(await bindings.ownerOf(id)).toMatchObject(bindings.self);
      }
      expect(bindings.lost).toEqual([]);
    },
  );
});
