import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Given, planWrites } from "./merge.ts";

type Row = { id: string; place: string; value: string; observedAt: number; seenAt: number; replaced: boolean };

/** The table, as the writer keeps it. */
function createTable() {
  const rows: Row[] = [];
  let count = 0;
  return {
    rows: () =>
      rows
        .map(({ place, value, observedAt, seenAt, replaced }) => ({ place, value, observedAt, seenAt, replaced }))
        .sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)),
    record(given: readonly Given<Given<unknown>>[]) {
      const newest = rows.filter(({ replaced }) => !replaced);
      const plan = planWrites(given, newest, () => {
        count += 1;
        return String(count);
      });
      for (const row of rows) {
        if (plan.replace.includes(row.id)) row.replaced = true;
        const again = plan.repeat.find(({ id }) => id === row.id);
        if (again) row.seenAt = again.seenAt;
      }
      for (const { id, observation, seenAt, replaced } of plan.append) {
        const { place, value, observedAt } = observation;
        const known = rows.some(
          (one) => one.place === place && one.value === value && one.observedAt === observedAt,
        );
        if (!known) rows.push({ id, place, value, observedAt, seenAt, replaced });
      }
      return plan.used.length;
    },
  };
}

const observation = fc
  .record({
    place: fc.constantFrom("a", "b"),
    value: fc.constantFrom("x", "y", "z"),
    observedAt: fc.nat({ max: 30 }),
  })
  .map((one): Given<Given<unknown>> => ({ ...one, observation: { ...one, observation: undefined } }));
/** Two at one time would be in no order. */
const observations = fc.uniqueArray(observation, {
  selector: ({ place, observedAt }) => `${place} ${observedAt}`,
  maxLength: 20,
});

describe("evidence that is recorded", () => {
  it("DRIFT-01 ends the same in one batch, in any order, as one by one in the order of time", () => {
    fc.assert(
      fc.property(observations, (given) => {
        const [batch, sequence] = [createTable(), createTable()];
        batch.record(given);
        for (const one of given.toSorted((a, b) => a.observedAt - b.observedAt)) sequence.record([one]);
        expect(batch.rows()).toEqual(sequence.rows());
      }),
      { numRuns: 2_000 },
    );
  });

  it("DRIFT-01 has one newest of each place, which was observed last, whatever arrives when", () => {
    fc.assert(
      fc.property(fc.array(fc.array(observation, { maxLength: 5 }), { maxLength: 8 }), (batches) => {
        const table = createTable();
        for (const batch of batches) table.record(batch);
        for (const place of new Set(batches.flat().map((one) => one.place))) {
          const rows = table.rows().filter((row) => row.place === place);
          const newest = rows.filter(({ replaced }) => !replaced);
          expect(newest).toHaveLength(1);
          const lastAt = Math.max(...batches.flat().map((one) => (one.place === place ? one.observedAt : 0)));
          expect(newest[0]?.seenAt).toBe(lastAt);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it("DRIFT-01 is not changed by the same again, and never has more rows than there were observations", () => {
    fc.assert(
      fc.property(observations, (given) => {
        const table = createTable();
        const newest = () => table.rows().filter(({ replaced }) => !replaced);
        table.record(given);
        const before = newest();
        table.record(given);
        table.record(given);
        expect(newest()).toEqual(before);
        expect(table.rows().length).toBeLessThanOrEqual(given.length);
      }),
      { numRuns: 2_000 },
    );
  });

  it("DRIFT-01 has nothing new from what holds until it changes, and everything from what does not", () => {
    const newest = { id: "1", place: "a", value: "x", observedAt: 1, seenAt: 1, detail: '{"n":1}' };
    const plan = (steady: boolean, value: string, detail: string | null, stored = [newest]) => {
      const { append, repeat } = planWrites(
        [{ ...{ place: "a", value, observedAt: 2, steady, detail }, observation: undefined }],
        stored,
        () => "2",
      );
      return { append: append.length, repeat: repeat.length };
    };
    expect(plan(true, "x", '{"n":1}')).toEqual({ append: 0, repeat: 0 });
    expect(plan(false, "x", '{"n":1}')).toEqual({ append: 0, repeat: 1 });
    expect(plan(true, "x", '{"n":2}')).toEqual({ append: 0, repeat: 1 });
    expect(plan(true, "x", null)).toEqual({ append: 0, repeat: 1 });
    expect(plan(true, "y", '{"n":1}')).toEqual({ append: 1, repeat: 0 });
    expect(plan(true, "x", '{"n":1}', [])).toEqual({ append: 1, repeat: 0 });
  });
});
