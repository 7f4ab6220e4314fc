import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type CronTrigger, dueTimes, keyOfTrigger, MOST_MISSED } from "./due.ts";

const hourly: CronTrigger = { type: "cron", schedule: "0 * * * *" };
const at = (text: string) => new Date(`2026-11-18T${text}Z`);
const texts = (times: Date[]) => times.map((time) => time.toISOString().slice(11, 16));

describe("FLOW-01 times of a schedule", () => {
  it("start nothing before they come, and one run when they do", () => {
    expect(dueTimes(hourly, { nextAt: at("10:00:00"), now: at("09:59:59") })).toEqual({
      start: [],
      nextAt: at("10:00:00"),
    });
    for (const missed of ["skip", "once", "all"] as const) {
      const due = dueTimes({ ...hourly, missed }, { nextAt: at("10:00:00"), now: at("10:00:00") });
      expect(due).toEqual({ start: [at("10:00:00")], nextAt: at("11:00:00") });
    }
  });

  it.each([
    ["skip", []],
    ["once", ["12:00"]],
    ["all", ["10:00", "11:00", "12:00"]],
  ] as const)("that were missed: %s", (missed, expected) => {
    const { start, nextAt } = dueTimes({ ...hourly, missed }, { nextAt: at("10:00:00"), now: at("12:30:00") });
    expect(texts(start)).toEqual(expected);
    expect(nextAt).toEqual(at("13:00:00"));
  });

  it("skip what was missed, and not what is only a little late", () => {
    const skip: CronTrigger = { ...hourly, missed: "skip" };
    expect(texts(dueTimes(skip, { nextAt: at("10:00:00"), now: at("12:00:59") }).start)).toEqual(["12:00"]);
    expect(dueTimes(skip, { nextAt: at("10:00:00"), now: at("12:01:01") }).start).toEqual([]);
  });

  it("start at most a bounded number of runs after any outage", () => {
    const often: CronTrigger = { type: "cron", schedule: "* * * * * *", missed: "all" };
    const { start, nextAt } = dueTimes(often, { nextAt: at("00:00:00"), now: at("12:00:00") });
    expect(start).toHaveLength(MOST_MISSED);
    expect(nextAt).toEqual(at("12:00:01"));
  });

  it("follow the clock of their time zone, once in the hour that comes twice", () => {
    const night: CronTrigger = {
      ...{ type: "cron", schedule: "30 2 * * *", timezone: "Europe/Berlin", missed: "all" },
    };
    const from = new Date("2026-10-24T00:30:00Z");
    const { start } = dueTimes(night, { nextAt: from, now: new Date("2026-10-26T12:00:00Z") });
    expect(start.map((time) => time.toISOString())).toEqual([
      "2026-10-24T00:30:00.000Z",
      "2026-10-25T00:30:00.000Z",
      "2026-10-26T01:30:00.000Z",
    ]);
  });

  it("never come twice, and never go back, whenever one looks", () => {
    const policies = fc.constantFrom("skip" as const, "once" as const, "all" as const);
    const looks = fc.array(fc.integer({ min: 0, max: 400 * 60_000 }), { minLength: 1, maxLength: 30 });
    fc.assert(
      fc.property(policies, looks, (missed, gaps) => {
        const trigger: CronTrigger = { type: "cron", schedule: "*/7 * * * *", missed };
        const seen: number[] = [];
        let now = at("00:00:00");
        let nextAt: Date | null = at("00:07:00");
        for (const gap of gaps) {
          now = new Date(now.getTime() + gap);
          const due: ReturnType<typeof dueTimes> = dueTimes(trigger, { nextAt: nextAt as Date, now });
          expect(due.start.every((time) => time <= now)).toBe(true);
          expect((due.nextAt as Date) > now).toBe(true);
          seen.push(...due.start.map((time) => time.getTime()));
          nextAt = due.nextAt;
        }
        expect(seen).toEqual([...new Set(seen)].sort((a, b) => a - b));
      }),
      { numRuns: 30 },
    );
  });
});

describe("FLOW-01 a trigger of a new version", () => {
  it("is the old one if it means the same, whatever becomes of missed times and of the secret", () => {
    expect(keyOfTrigger({ ...hourly, missed: "all", timezone: "UTC" })).toBe(keyOfTrigger(hourly));
    expect(keyOfTrigger({ ...hourly, timezone: "Asia/Tokyo" })).not.toBe(keyOfTrigger(hourly));
    expect(keyOfTrigger({ type: "webhook", secret: "a" })).toBe(keyOfTrigger({ type: "webhook" }));
  });
});
