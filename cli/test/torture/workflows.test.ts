import { expect, it } from "vitest";
import { tortureWorkflows } from "./workflows.ts";

it("FLOW-02 FLOW-03 ends every run once, repeats no effect, and its events give its state, through kills after any event", async () => {
  const report = await tortureWorkflows({ kills: 20, seed: 20_261_118 });
  expect(report).toMatchObject({ notOnce: [], repeated: [], untraced: [], different: [] });
  expect(Object.values(report.kills)).toEqual([4, 4, 4, 4, 4]);
  // Only what ran when its own process was killed may fail: a step of the worker whose outcome is unknown, one of the agent.
  const { succeeded = 0, outcome_unknown: _, NODE_EXECUTION_FAILED: __, ...others } = report.ended;
  expect(others).toEqual({});
  expect(succeeded).toBeGreaterThan(0);
}, 1_200_000);
