// The driver with a clock that stands still until it is moved, and without a database.

import { createLog } from "@holdfast/service/log";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Topic } from "../signals.ts";
import type { Clock } from "./clock.ts";
import { startBackground } from "./driver.ts";
import type { Job } from "./job.ts";

function manualClock(): Clock & { advance(seconds: number): Promise<void> } {
  let now = Date.parse("2026-03-01T03:00:00.000Z");
  const repeated = new Set<{ everyMs: number; next: number; work(): void }>();
  return {
    now: () => now,
    repeat(everyMs, work) {
      const one = { everyMs, next: now + everyMs, work };
      repeated.add(one);
      return () => void repeated.delete(one);
    },
    async advance(seconds) {
      const until = now + seconds * 1000;
      for (;;) {
        const due = [...repeated].filter(({ next }) => next <= until).toSorted((a, b) => a.next - b.next)[0];
        now = due?.next ?? until;
        if (!due) break;
        due.next += due.everyMs;
        due.work();
        await settle();
      }
    },
  };
}

/** Lets everything happen that waits for nothing but its turn in the event loop. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

function manualSignals() {
  const listeners = new Map<Topic, Set<(ids: readonly string[]) => void>>();
  return {
    subscribe(topic: Topic, listener: (ids: readonly string[]) => void) {
      const all = listeners.get(topic) ?? new Set();
      listeners.set(topic, all.add(listener));
      return () => void all.delete(listener);
    },
    publish(topic: Topic) {
      for (const listener of listeners.get(topic) ?? []) listener([]);
    },
    count: () => [...listeners.values()].reduce((sum, all) => sum + all.size, 0),
  };
}

type Context = { number: number };

function start(jobs: Job<Context>[], options: { take?: (name: string) => Promise<boolean> } = {}) {
  const clock = manualClock();
  const signals = manualSignals();
  const lines: { level: string; msg: string; job?: string }[] = [];
  const log = createLog({
    process: "test",
    level: "debug",
    destination: { write: (line) => lines.push(JSON.parse(line)) },
  });
  const turns = { take: async (name: string) => options.take?.(name) ?? true };
  const background = startBackground({ jobs, context: { number: 7 }, signals, turns, log, clock });
  const report = (name: string) => {
    const found = background.reports()[name];
    if (!found) throw new Error(`no report of ${name}`);
    return found;
  };
  return { clock, signals, lines, background, report };
}

/** A job whose turns end when the test says so. */
function heldJob(over: Partial<Job<Context>> = {}) {
  const turns: PromiseWithResolvers<undefined>[] = [];
  const job: Job<Context> = {
    name: "held",
    every: 10,
    runsIn: "each api",
    run: () => {
      const turn = Promise.withResolvers<undefined>();
      turns.push(turn);
      return turn.promise;
    },
    ...over,
  };
  return { job, turns };
}

describe("a background job", () => {
  it("runs at its interval with the context, and reports what it did", async () => {
    const seen: number[] = [];
    const { clock, report, lines } = start([
      {
        name: "count",
        every: ({ number }) => number,
        runsIn: "each api",
        run: async ({ number }) => ({ removed: seen.push(number) - 1 }),
      },
    ]);
    await clock.advance(6);
    expect(seen).toEqual([]);
    expect(report("count")).toMatchObject({ turns: 0, started_at: null, result: null, every_seconds: 7 });
    await clock.advance(8);
    expect(seen).toEqual([7, 7]);
    expect(report("count")).toMatchObject({
      ...{ turns: 2, overruns: 0, failures: 0, failing: false },
      ...{ started_at: "2026-03-01T03:00:14.000Z", duration_ms: 0, result: { removed: 1 } },
    });
    // The first turn removed nothing, which is not worth a line.
    expect(lines.filter(({ msg }) => msg === "background job did work")).toHaveLength(1);
  });

  it("uses a new interval within a second, and does not begin one that is 0", async () => {
    let every = 100;
    let turns = 0;
    const { clock, report } = start([
      {
        name: "swept",
        every: () => every,
        runsIn: "each api",
        run: async () => {
          turns += 1;
        },
      },
    ]);
    await clock.advance(50);
    every = 10;
    await clock.advance(1);
    expect(report("swept")).toMatchObject({ every_seconds: 10 });
    await clock.advance(30);
    expect(turns).toBe(3);
    every = 0;
    await clock.advance(10);
    expect(turns).toBe(4);
    every = 1_000;
    await clock.advance(500);
    expect(turns).toBe(4);
  });

  it("does not run with an interval of 0", async () => {
    const { clock, background } = start([
      { name: "off", every: 0, runsIn: "each api", run: async () => expect.fail() },
    ]);
    await clock.advance(1_000);
    expect(background.reports()).toEqual({});
  });

  it("may begin with the process, and then goes on at its interval", async () => {
    const { job, turns } = heldJob({ atStart: true });
    const { clock } = start([job]);
    await settle();
    expect(turns).toHaveLength(1);
    turns[0]?.resolve(undefined);
    await settle();
    await clock.advance(9);
    expect(turns).toHaveLength(1);
    await clock.advance(1);
    expect(turns).toHaveLength(2);
  });

  it("leaves out the turns that are due while one runs, and counts them", async () => {
    const { job, turns } = heldJob();
    const { clock, report } = start([job]);
    await clock.advance(35);
    expect(turns).toHaveLength(1);
    expect(report("held")).toMatchObject({ turns: 1, overruns: 2 });
    turns[0]?.resolve(undefined);
    await settle();
    expect(turns).toHaveLength(1);
    await clock.advance(5);
    expect(turns).toHaveLength(2);
    expect(report("held")).toMatchObject({ turns: 2, overruns: 2, duration_ms: 25_000 });
  });

  it("is woken by its signals, and once more when one comes while it runs", async () => {
    const { job, turns } = heldJob({ wakeOn: ["task", "allocation"] });
    const { signals, report } = start([job]);
    signals.publish("terminal");
    expect(turns).toHaveLength(0);
    signals.publish("task");
    await settle();
    expect(turns).toHaveLength(1);
    signals.publish("allocation");
    signals.publish("task");
    await settle();
    expect(turns).toHaveLength(1);
    turns[0]?.resolve(undefined);
    await settle();
    expect(turns).toHaveLength(2);
    turns[1]?.resolve(undefined);
    await settle();
    expect(turns).toHaveLength(2);
    expect(report("held")).toMatchObject({ turns: 2, overruns: 0 });
  });

  it("that fails is retried at its next turn; failing and recovery are logged once", async () => {
    const outcomes = ["down", "down", undefined, "down"];
    const { clock, report, lines } = start([
      {
        name: "frail",
        every: 5,
        runsIn: "each api",
        run: async () => {
          const failure = outcomes.shift();
          if (failure) throw new Error(`${failure} hft_${"x".repeat(43)}`);
          return { removed: 0 };
        },
      },
    ]);
    await clock.advance(10);
    expect(report("frail")).toMatchObject({
      ...{ turns: 2, failures: 2, failing: true, result: null },
      ...{ failed_at: "2026-03-01T03:00:10.000Z", failure: "down hft_[redacted]" },
    });
    await clock.advance(5);
    expect(report("frail")).toMatchObject({ turns: 3, failures: 2, failing: false, result: { removed: 0 } });
    await clock.advance(5);
    expect(report("frail")).toMatchObject({ failures: 3, failing: true });

    expect(lines.filter(({ level }) => level === "warn")).toHaveLength(2);
    expect(lines.filter(({ msg }) => msg.includes("succeeds again"))).toHaveLength(1);
  });

  it("of one worker runs only when it takes the turn; a turn that cannot be taken is tried at the next one", async () => {
    const answers = [true, false, "down", true];
    const { job, turns } = heldJob({ runsIn: "one worker" });
    const { clock, report } = start([job], {
      take: async () => {
        const answer = answers.shift();
        if (answer === "down") throw new Error("no database");
        return answer === true;
      },
    });
    for (let turn = 0; turn < 4; turn += 1) {
      await clock.advance(10);
      turns.at(-1)?.resolve(undefined);
      await settle();
    }
    expect(turns).toHaveLength(2);
    expect(report("held")).toMatchObject({ turns: 2, failures: 0, overruns: 0 });
  });

  it("is named once", () => {
    const { job } = heldJob();
    expect(() => start([job, job])).toThrow("two background jobs are named held");
  });

  it("never has two turns at once, whatever happens when", async () => {
    const events = fc.array(fc.constantFrom("due", "wake", "end", "fail"), { maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(events, async (all) => {
        const { job, turns } = heldJob({ wakeOn: ["task"] });
        const { clock, signals, report } = start([job]);
        let [atOnce, ended] = [0, 0];
        for (const event of all) {
          if (event === "due") await clock.advance(10);
          else if (event === "wake") signals.publish("task");
          else if (ended < turns.length) {
            if (event === "end") turns[ended]?.resolve(undefined);
            else turns[ended]?.reject(new Error("failed"));
            ended += 1;
          }
          await settle();
          atOnce = Math.max(atOnce, turns.length - ended);
        }
        expect(atOnce).toBeLessThanOrEqual(1);
        expect(report("held").turns).toBe(turns.length);
        expect(report("held").failures).toBeLessThanOrEqual(ended);
      }),
    );
  });
});

describe("stopping", () => {
  it("waits for the turn that runs, starts no other, and listens to nothing", async () => {
    const { job, turns } = heldJob({ wakeOn: ["task"] });
    const { clock, signals, background } = start([job]);
    await clock.advance(10);
    signals.publish("task");
    let stopped = false;
    const stopping = background.stop().then(() => {
      stopped = true;
    });
    await settle();
    expect(stopped).toBe(false);
    turns[0]?.resolve(undefined);
    await stopping;
    background.wake("held");
    await clock.advance(100);
    expect(turns).toHaveLength(1);
    expect(signals.count()).toBe(0);
  });
});
