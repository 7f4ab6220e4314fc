// The journal against a disk that loses power at any step. The rule, for every run: what is found
// afterwards is the state after some operation, none of those that were waited for is missing.

import type { TaskResultReport } from "@holdfast/contracts/node/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Journal, journalOn } from "../src/journal/journal.ts";
import { type Fate, type FaultyDisk, faultyDisk, type Images } from "./support/faulty-disk.ts";

const START = Date.parse("2026-01-01T00:00:00Z");
const LIFETIME_MS = 60_000;
const REMEMBERED_AFTER_MS = 120_000;
const RESULT_BYTES = 2000;
const TASKS = 12;

type Operation =
  | { do: "claim"; task: number; idempotent: boolean }
  | { do: "start" | "settle" | "offerAgain"; task: number }
  | { do: "end"; task: number; bytes: number }
  | { do: "wait" }
  | { do: "pass"; ms: number };

const task = fc.nat({ max: TASKS - 1 });
const operations = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constant("claim" as const), task, idempotent: fc.boolean() }) },
    { weight: 6, arbitrary: fc.record({ do: fc.constantFrom("start" as const, "settle" as const), task }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("offerAgain" as const), task }) },
    {
      weight: 4,
      arbitrary: fc.record({ do: fc.constant("end" as const), task, bytes: fc.nat({ max: RESULT_BYTES }) }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("wait" as const) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("pass" as const), ms: fc.nat({ max: LIFETIME_MS }) }) },
  ) as fc.Arbitrary<Operation>,
  { minLength: 1, maxLength: 400, size: "max" },
);
const fate: fc.Arbitrary<Fate> = fc.oneof(
  fc.constant<Fate>({ kind: "kept" }),
  fc.constant<Fate>({ kind: "lost" }),
  fc.record({
    kind: fc.constantFrom("torn" as const, "garbage" as const),
    share: fc.double({ min: 0, max: 1, noNaN: true }),
  }),
);
const fates = fc.array(fate, { minLength: 1, maxLength: 8 });
const capacity = fc.constantFrom(24 * 1024, 32 * 1024, 48 * 1024);

const idOf = (number: number) => `01a1e13c-bc3d-71c5-9b58-${number.toString(16).padStart(12, "0")}`;

/** What the journal should know of one task, written down as simply as possible. */
type Known = {
  idempotent: boolean;
  generation: number;
  expiresAt: number;
  state: "held" | "started" | "unsent" | "settled";
  report?: TaskResultReport;
};
type Model = ReadonlyMap<string, Known>;

/** What is left of it when the agent starts again at `now`. */
function afterRestart(model: Model, now: number) {
  const states: Record<string, string> = {};
  const unsent: TaskResultReport[] = [];
  for (const [id, { state, generation, idempotent, expiresAt, report }] of model) {
    if (state === "unsent" && report) unsent.push(report);
    const forgotten = state === "held" || (state === "started" && idempotent);
    const expired = state === "settled" && expiresAt + REMEMBERED_AFTER_MS <= now;
    if (!forgotten && !expired) states[id] = state === "started" ? `started ${generation}` : state;
  }
  return { states, unsent: unsent.sort((a, b) => (a.task_id < b.task_id ? -1 : 1)) };
}

function found(journal: Journal) {
  const states: Record<string, string> = {};
  for (let number = 0; number < TASKS; number += 1) {
    const state = journal.stateOf(idOf(number));
    if (state !== "unknown") states[idOf(number)] = state;
  }
  for (const { task_id, generation } of journal.interrupted()) states[task_id] += ` ${generation}`;
  return { states, unsent: journal.unsent().sort((a, b) => (a.task_id < b.task_id ? -1 : 1)) };
}

/** Drives the journal until the power goes; every state it went through, and the first that may be found again. */
async function drive(
  disk: FaultyDisk,
  steps: readonly Operation[],
  clock: { now: number },
  before: Model = new Map(),
) {
  const history: Model[] = [before];
  let durable = 0;
  const unfinished: Promise<void>[] = [];
  let journal: Journal;
  try {
    journal = journalOn(disk, { directory: "the test", now: () => clock.now });
  } catch (error) {
    if (!disk.powerLost) throw error;
    return { history, durable };
  }
  const latest = () => new Map(history.at(-1));
  const become = (id: string, known: Known) => history.push(latest().set(id, known));
  /** An operation counts as done for good when its promise resolved. */
  const waitFor = (promise: Promise<void>, mustBeDurable: boolean) => {
    const index = history.length - 1;
    unfinished.push(
      promise.then(
        () => {
          if (mustBeDurable) durable = Math.max(durable, index);
        },
        (error: unknown) => {
          if (!disk.powerLost) throw error;
        },
      ),
    );
  };

  for (const step of steps) {
    if (step.do === "pass") {
      clock.now += step.ms;
      continue;
    }
    if (step.do === "wait") {
      await Promise.all(unfinished.splice(0));
      if (disk.powerLost) break;
      continue;
    }
    const id = idOf(step.task);
    const known = latest().get(id);
    const state = journal.stateOf(id);
    try {
      if (step.do === "claim" && state === "unknown" && journal.roomFor(RESULT_BYTES) > 0) {
        const expiresAt = clock.now + LIFETIME_MS;
        const generation = (known?.generation ?? 0) + 1;
        const { idempotent } = step;
        become(id, { idempotent, generation, expiresAt, state: "held" });
        journal.claimed({
          task_id: id,
          generation,
          type: "node.noop",
          expires_at: new Date(expiresAt).toISOString(),
          idempotent,
          resultBytes: RESULT_BYTES,
        });
      } else if (step.do === "start" && known && state === "held") {
        become(id, { ...known, state: "started" });
        waitFor(journal.started(id), !known.idempotent);
      } else if (step.do === "end" && known && (state === "held" || state === "started")) {
        const outcome = { status: "succeeded" as const, result: "x".repeat(step.bytes) };
        const report = { task_id: id, generation: known.generation, timings: { run: history.length }, outcome };
        become(id, { ...known, state: "unsent", report });
        waitFor(journal.result(report), !known.idempotent);
      } else if (step.do === "settle" && known && state === "unsent") {
        const { report: _, ...rest } = known;
        become(id, { ...rest, state: "settled" });
        journal.settled([id]);
      } else if (step.do === "offerAgain" && known && state !== "unknown" && state !== "settled") {
        const generation = known.generation + 1;
        const report = known.report && { ...known.report, generation };
        become(id, { ...known, generation, ...(report ? { report } : {}) });
        journal.regenerated(id, generation);
      }
    } catch (error) {
      if (!disk.powerLost) throw error;
    }
    if (disk.powerLost) break;
  }
  await Promise.all(unfinished);
  return { history, durable };
}

/** As text, made once: every image of a crash is compared with the same states. */
const asFound = new WeakMap<Model, { now: number; text: string }>();
function textAfterRestart(model: Model, now: number): string {
  const known = asFound.get(model);
  if (known?.now === now) return known.text;
  const text = JSON.stringify(sorted(afterRestart(model, now)));
  asFound.set(model, { now, text });
  return text;
}

function expectOneOf(images: Images, history: readonly Model[], durable: number, now: number): Journal {
  const journal = journalOn(faultyDisk(images), { directory: "the test", now: () => now });
  const possible = history.slice(durable).map((model) => textAfterRestart(model, now));
  expect(possible).toContain(JSON.stringify(sorted(found(journal))));
  return journal;
}

const sorted = ({ states, unsent }: ReturnType<typeof found>) => ({
  states: Object.entries(states).sort(([a], [b]) => (a < b ? -1 : 1)),
  unsent: unsent.map(({ task_id, generation, timings, outcome }) => ({ task_id, generation, timings, outcome })),
});

describe("the journal after a crash", () => {
  it("TASK-05 finds a state it was in, and nothing that was waited for is missing", async () => {
    await fc.assert(
      fc.asyncProperty(
        capacity,
        operations,
        fc.nat({ max: 300 }),
        fates,
        async (bytes, steps, powerLoss, ends) => {
          const clock = { now: START };
          const disk = faultyDisk(bytes);
          disk.losePowerAt(powerLoss + 1);
          const { history, durable } = await drive(disk, steps, clock);
          const images = disk.imagesAfter((write) => ends[write % ends.length] ?? { kind: "lost" });
          expectOneOf(images, history, durable, clock.now);
        },
      ),
      { numRuns: 250 },
    );
  });

  it("TASK-05 finds it again after crash upon crash", async () => {
    await fc.assert(
      fc.asyncProperty(
        capacity,
        fc.array(fc.tuple(operations, fc.nat({ max: 60 }), fates), { minLength: 2, maxLength: 5 }),
        async (bytes, lives) => {
          const clock = { now: START };
          let images: Images = [Buffer.alloc(bytes), Buffer.alloc(bytes)];
          let found: Model = new Map();
          for (const [steps, powerLoss, ends] of lives) {
            const disk = faultyDisk(images);
            disk.losePowerAt(powerLoss + 1);
            const { history, durable } = await drive(disk, steps, clock, found);
            images = disk.imagesAfter((write) => ends[write % ends.length] ?? { kind: "lost" });
            const journal = expectOneOf(images, history, durable, clock.now);
            found = modelOf(journal, history.slice(durable), clock.now);
          }
        },
      ),
      { numRuns: 80 },
    );
  });

  it("TASK-05 does not find what outlived a lost record, once that record is written again", async () => {
    const clock = { now: START };
    const claim: Operation = { do: "claim", task: 0, idempotent: false };
    const first = faultyDisk(24 * 1024);
    // Three steps to begin the file, a write for each operation; then the power goes instead of the sync.
    first.losePowerAt(6);
    await drive(first, [claim, { do: "start", task: 0 }], clock);
    expect(first.unsynced, "the two records").toBe(2);
    const second = faultyDisk(first.imagesAfter((write) => ({ kind: write === 0 ? "lost" : "kept" })));
    const { history } = await drive(second, [claim], clock);
    expectOneOf(
      second.imagesAfter(() => ({ kind: "kept" })),
      history,
      history.length - 1,
      clock.now,
    );
  });

  it("TASK-05 survives a crash at every step of many tasks and rewrites, however each write ends", async () => {
    const ends: Fate[] = [
      { kind: "kept" },
      { kind: "lost" },
      { kind: "torn", share: 0.5 },
      { kind: "garbage", share: 0.1 },
    ];
    const steps: Operation[] = [];
    for (let number = 0; number < 24; number += 1) {
      const task = number % TASKS;
      steps.push({ do: "claim", task, idempotent: number % 3 === 0 }, { do: "start", task });
      steps.push({ do: "end", task, bytes: RESULT_BYTES }, { do: "wait" });
      if (number > 0) steps.push({ do: "settle", task: (number - 1) % TASKS });
      steps.push({ do: "pass", ms: 40_000 });
    }
    const undisturbed = faultyDisk(24 * 1024);
    await drive(undisturbed, steps, { now: START });
    expect(undisturbed.steps, "there were several rewrites").toBeGreaterThan(100);
    for (let step = 1; step <= undisturbed.steps; step += 1) {
      const clock = { now: START };
      const disk = faultyDisk(24 * 1024);
      disk.losePowerAt(step);
      const { history, durable } = await drive(disk, steps, clock);
      for (const odd of Array(disk.unsynced).keys()) {
        for (const its of ends) {
          for (const others of ends.slice(0, 2)) {
            const images = disk.imagesAfter((write) => (write === odd ? its : others));
            expectOneOf(images, history, durable, clock.now);
          }
        }
      }
    }
  });

  it.for(["zeros", "garbage", "old bytes"])(
    "TASK-05 invents nothing when one file is overwritten by %s",
    async (by) => {
      await fc.assert(
        fc.asyncProperty(
          capacity,
          operations,
          fc.constantFrom(0 as const, 1 as const),
          async (bytes, steps, file) => {
            const clock = { now: START };
            const disk = faultyDisk(bytes);
            const { history } = await drive(disk, steps, clock);
            const images = disk.imagesAfter(() => ({ kind: "kept" }));
            const inUse = images[0].readUInt32BE(4) > images[1].readUInt32BE(4) ? 0 : 1;
            if (by === "old bytes") images[file].fill(0, 0, 8);
            else images[file].fill(by === "zeros" ? 0 : 0x5a);
            if (file !== inUse) return void expectOneOf(images, history, history.length - 1, clock.now);
            const journal = journalOn(faultyDisk(images), { directory: "the test", now: () => clock.now });
            for (const [id, state] of Object.entries(found(journal).states)) {
              expect(history.some((model) => state.startsWith(model.get(id)?.state ?? "never"))).toBe(true);
            }
            for (const report of journal.unsent()) {
              expect(history.map((model) => model.get(report.task_id)?.report)).toContainEqual(report);
            }
          },
        ),
        { numRuns: 40 },
      );
    },
  );
});

/** Of the possible states the one that was found. */
function modelOf(journal: Journal, possible: readonly Model[], now: number): Model {
  const text = JSON.stringify(sorted(found(journal)));
  const model = possible.find((one) => textAfterRestart(one, now) === text) ?? new Map();
  const { states } = afterRestart(model, now);
  return new Map([...model].filter(([id]) => id in states));
}
