import { fleetStates } from "@holdfast/contracts/endpoints/fleet";
import { NodeStateFilter } from "@holdfast/contracts/endpoints/nodes";
import { allocationStatusTitles, taskStatusTitles } from "@holdfast/contracts/words/state-titles";
import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { nodeStateOption } from "./node/list.ts";
import { stateOption } from "./state-option.ts";

function parsed(option: ReturnType<typeof stateOption>, text: string): unknown {
  const command = new Command()
    .exitOverride()
    .configureOutput({ writeErr: () => {} })
    .addOption(option);
  return Object.values(command.parse([`--${option.name()}`, text], { from: "user" }).opts())[0];
}

describe("an option that filters by state", () => {
  it.for(NodeStateFilter.options)("takes the API's value %s", (value) => {
    expect(parsed(nodeStateOption(), value)).toBe(value);
  });

  it.for([
    ["healthy", "fine"],
    ["degraded", "troubled"],
    ["offline", "silent"],
    ["quarantined", "fenced"],
    ["enrolling", "joining"],
    ["unhealthy", "not_fine"],
    ["retired", "retired"],
  ] as const)("takes the title %s for %s", ([title, value]) => {
    expect(parsed(nodeStateOption(), title)).toBe(value);
  });

  it("takes both for allocations and tasks", () => {
    const allocations = () => stateOption("--status <status>", "by status", allocationStatusTitles);
    expect([parsed(allocations(), "ready"), parsed(allocations(), "active")]).toEqual(["active", "active"]);
    const tasks = () => stateOption("--status <status>", "by status", taskStatusTitles);
    expect([parsed(tasks(), "running"), parsed(tasks(), "dispatched")]).toEqual(["dispatched", "dispatched"]);
  });

  it("names what is allowed when it refuses", () => {
    expect(() => parsed(nodeStateOption(), "gone")).toThrow(/Allowed choices are offline, degraded, .*unhealthy/);
    expect(fleetStates.length).toBe(6);
  });
});
