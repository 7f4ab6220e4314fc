import { expect, it } from "vitest";
import { lacks } from "../../../scripts/facilities.mjs";
import { tortureExecutions } from "./executions.ts";

it.skipIf(lacks("redis"))(
  "EXEC-02 EXEC-04 ends every request once, loses no result and runs no step twice, through kills and broken connections",
  async () => {
    const report = await tortureExecutions({ kills: 16, seed: 20_261_118 });
    expect(report).toMatchObject({ changed: [], repeated: [], untraced: [] });
    expect(report.steps).toBeGreaterThan(20);
    expect(report.brokenConnections).toBeGreaterThan(0);
    expect(report.repeatedFrames).toBeGreaterThan(0);
    expect(Object.values(report.kills)).not.toContain(0);
    // Only a step that ran on an agent when it was killed fails: outages are shorter than deadlines.
    const { succeeded = 0, NODE_EXECUTION_FAILED: cut = 0, ...others } = report.ended;
    expect(others).toEqual({});
    expect(succeeded).toBeGreaterThan(cut);
  },
  1_200_000,
);
