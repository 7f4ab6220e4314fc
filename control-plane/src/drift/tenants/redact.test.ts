import type { Task } from "@holdfast/contracts/endpoints/tasks";
import { describe, expect, it } from "vitest";
import { worstFirst } from "../../fleet/order.ts";
import { rankedForTenant, taskForTenant } from "./redact.ts";

describe("a task for tenants", () => {
  it("DRIFT-10 has no id of an incident, also when that is its correlation id", () => {
    const task = { id: "task", incident_id: "incident", correlation_id: "request" } as Task;
    expect(taskForTenant(task)).toEqual({ id: "task", incident_id: null, correlation_id: "request" });
    const check = { ...task, correlation_id: "incident" };
    expect(taskForTenant(check)).toEqual({ id: "task", incident_id: null, correlation_id: "task" });
  });
});

describe("a list of nodes for tenants", () => {
  it("DRIFT-10 does not tell by its order which node is worse off", () => {
    const common = { state: "troubled", severity: null, since: null } as const;
    const nodes = [
      { ...common, id: "1", severity: "P0" as const, since: 1 },
      { ...common, id: "2" },
      { ...common, id: "3", severity: "P1" as const, since: 2 },
    ];
    const ids = (ranked: typeof nodes) =>
      worstFirst(ranked as never, undefined).map(({ id }: { id: string }) => id);
    expect(ids(nodes)).toEqual(["1", "3", "2"]);
    expect(ids(nodes.map(rankedForTenant) as never)).toEqual(["3", "2", "1"]);
  });
});
