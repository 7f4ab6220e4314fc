import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { afterCut, afterOutage, afterRefusal, afterSuccess, atFirst, type Choice, mayStream } from "./choice.ts";

describe("stream or poll", () => {
  it("TASK-02 tries a stream at first; where none can be opened, it polls and tries again ever less often", () => {
    expect(mayStream(atFirst, 0)).toBe(true);
    let choice = atFirst;
    let now = 0;
    const pauses: number[] = [];
    for (let count = 0; count < 8; count += 1) {
      choice = afterRefusal(choice, now);
      expect(mayStream(choice, now)).toBe(false);
      pauses.push(choice.pollUntil - now);
      now = choice.pollUntil;
      expect(mayStream(choice, now)).toBe(true);
    }
    expect(pauses).toEqual([30_000, 60_000, 120_000, 240_000, 480_000, 600_000, 600_000, 600_000]);
  });

  it("TASK-02 tries a stream soon after an outage, however long it was", () => {
    let choice: Choice = afterRefusal(atFirst, 0);
    let now = choice.pollUntil;
    for (let count = 0; count < 20; count += 1) {
      choice = afterOutage(choice, now);
      expect(choice.pollUntil - now).toBe(30_000);
      now = choice.pollUntil;
    }
    expect(afterRefusal(choice, now).pollUntil - now, "an outage is no refusal").toBe(60_000);
  });

  it("TASK-02 pings where silent connections are cut: more often than the silence that was too long", () => {
    const once = afterCut(atFirst, { livedMs: 90_000, silentMs: 30_000 }, 0);
    expect(once.pingMs).toBe(15_000);
    expect(mayStream(once, 0)).toBe(true);
    expect(afterCut(once, { livedMs: 90_000, silentMs: 40_000 }, 0).pingMs).toBe(15_000);
    expect(afterCut(once, { livedMs: 90_000, silentMs: 10_000 }, 0).pingMs).toBe(5_000);
    expect(afterCut(atFirst, { livedMs: 90_000, silentMs: 100 }, 0).pingMs).toBeUndefined();
  });

  it("TASK-02 polls where streams are cut again and again soon after they opened", () => {
    let choice: Choice = atFirst;
    for (let count = 0; count < 3; count += 1) {
      choice = afterCut(choice, { livedMs: 5_000, silentMs: 0 }, 0);
      expect(mayStream(choice, 0)).toBe(true);
    }
    choice = afterCut(choice, { livedMs: 5_000, silentMs: 0 }, 0);
    expect(mayStream(choice, 0)).toBe(false);
  });

  it("TASK-02 always comes back to streams, whatever happened before", () => {
    const event = fc.oneof(
      fc.constant("refusal" as const),
      fc.constant("success" as const),
      fc.constant("outage" as const),
      fc.record({ livedMs: fc.nat(200_000), silentMs: fc.nat(200_000) }),
    );
    fc.assert(
      fc.property(fc.array(event), (events) => {
        let choice: Choice = atFirst;
        for (const one of events) {
          if (one === "refusal") choice = afterRefusal(choice, 0);
          else if (one === "outage") choice = afterOutage(choice, 0);
          else if (one === "success") choice = afterSuccess(choice);
          else choice = afterCut(choice, one, 0);
        }
        expect(mayStream(choice, 600_000)).toBe(true);
        if (choice.pingMs !== undefined) expect(choice.pingMs).toBeGreaterThanOrEqual(2_000);
      }),
    );
  });
});
