import { expect, it } from "vitest";
import { torture } from "./torture.ts";

it("OPS-01 loses no acknowledged row in 10 rounds of kill -9, and every start recovers", async () => {
  const report = await torture({ rounds: 10, seed: 20_260_101 });
  expect(report).toMatchObject({ lost: [], doubled: 0, refusals: [] });
  expect(report.acknowledged).toBeGreaterThan(50);
}, 1_200_000);
