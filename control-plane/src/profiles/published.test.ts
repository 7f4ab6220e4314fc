import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ADOPT_WITHIN_MS, acceptable, type PublishedProfile } from "./published.ts";

const at = (version: number, ms: number): PublishedProfile => ({
  version,
  endpoints: {},
  publishedAt: new Date(ms),
});
const versions = (published: PublishedProfile[], now: number) =>
  acceptable(published, now).map(({ version }) => version);

describe("profiles that nodes may use", () => {
  it("DRIFT-01 are the newest, and those that it replaced so recently that nodes may not know yet", () => {
    const published = [at(3, 1_000_000), at(2, 500_000), at(1, 0)];
    expect(versions(published, 1_000_000)).toEqual([3, 2]);
    expect(versions(published, 1_000_000 + ADOPT_WITHIN_MS - 1)).toEqual([3, 2]);
    expect(versions(published, 1_000_000 + ADOPT_WITHIN_MS)).toEqual([3]);
    expect(versions([at(2, 10), at(1, 0)].reverse(), 20)).toEqual([2, 1]);
    expect(versions([], 0)).toEqual([]);
  });

  it("DRIFT-01 always include the newest and leave no gap", () => {
    const gaps = fc.array(fc.nat({ max: 400_000 }), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(gaps, fc.nat({ max: 400_000 }), (between, age) => {
        let time = 0;
        const published = between.map((gap, index) => {
          time += gap;
          return at(index + 1, time);
        });
        const accepted = versions(published, time + age);
        expect(accepted).toEqual(accepted.map((_, index) => published.length - index));
        expect(accepted.length).toBeGreaterThan(0);
      }),
    );
  });
});
