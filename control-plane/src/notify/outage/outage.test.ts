import { uuidForm, uuidv7Time } from "@holdfast/kit/uuid";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DOWN_AFTER_MS, nextOutage, type Outage, type OutageEvent, outageMessageId } from "./outage.ts";

/** Looks every two seconds. */
function eventsOf(looks: readonly boolean[]): { at: number; event: OutageEvent }[] {
  let outage: Outage = { state: "up" };
  return looks.flatMap((reachable, index) => {
    const next = nextOutage(outage, { reachable, now: index * 2_000 });
    outage = next.outage;
    return next.event ? [{ at: index * 2_000, event: next.event }] : [];
  });
}

describe("an outage of the database", () => {
  it("DRIFT-16 is reported once when it has lasted, and once when it is over", () => {
    const looks = [true, ...Array<boolean>(20).fill(false), true, true];
    expect(eventsOf(looks)).toEqual([
      { at: 2_000 + DOWN_AFTER_MS, event: "database.unreachable" },
      { at: 42_000, event: "database.recovered" },
    ]);
  });

  it("DRIFT-16 is not reported while it is shorter, however often it comes", () => {
    expect(eventsOf([false, false, false, false, false, true, false, false, false, false, false, true])).toEqual(
      [],
    );
  });

  it("DRIFT-16 is never over without having been reported, nor reported twice", () => {
    const runs = fc.array(fc.tuple(fc.boolean(), fc.integer({ min: 1, max: 12 })), {
      minLength: 20,
      maxLength: 40,
    });
    let most = 0;
    fc.assert(
      fc.property(runs, (all) => {
        const events = eventsOf(all.flatMap(([reachable, times]) => Array<boolean>(times).fill(reachable)));
        most = Math.max(most, events.length);
        for (const [index, { event }] of events.entries())
          expect(event).toBe(index % 2 === 0 ? "database.unreachable" : "database.recovered");
      }),
    );
    expect(most).toBeGreaterThan(2);
  });

  it("DRIFT-16 has one id per event and receiver in all replicas that notice it at about the same time", () => {
    const since = Date.parse("2026-01-01T10:01:00Z");
    const id = outageMessageId("database.unreachable", since, "one");
    expect(id).toMatch(uuidForm);
    expect(uuidv7Time(id)).toEqual(new Date("2026-01-01T10:00:00Z"));
    expect(outageMessageId("database.unreachable", since + 4_000, "one")).toBe(id);
    const others = [
      outageMessageId("database.recovered", since, "one"),
      outageMessageId("database.unreachable", since, "two"),
      outageMessageId("database.unreachable", since + 300_000, "one"),
    ];
    expect(new Set([id, ...others]).size).toBe(4);
    expect((others[0] ?? "") > id).toBe(true);
  });
});
