import { expect, it } from "vitest";
import { tortureTasks } from "./tasks.ts";

it("TASK-02 TASK-04 TASK-05 ends every task once, loses no result and repeats nothing, through kills and broken connections, over streams and polls", async () => {
  const report = await tortureTasks({ kills: 20, seed: 20_260_301 });
  expect(report).toMatchObject({ missing: [], changed: [], repeated: [], untraced: [] });
  expect(report.tasks).toBeGreaterThan(50);
  expect(report.ended["completed"]).toBeGreaterThan(25);
  expect(report.brokenConnections).toBeGreaterThan(0);
  expect(Math.min(report.starts.stream, report.starts.poll)).toBeGreaterThan(1);
  // A task whose agent was killed may wait for the end of its lease, and twenty restarts take their time on a busy machine.
}, 1_200_000);
