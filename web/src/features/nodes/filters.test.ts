import { nodeStatuses } from "@holdfast/contracts/node-protocol";
import { describe, expect, it } from "vitest";
import { isShown, nodeFiltersFromSearch } from "./filters.ts";

describe("the filters of the nodes page", () => {
  it("OPS-01 drops what an address bar may hold and nobody understands", () => {
    expect(nodeFiltersFromSearch({ name: " web ", status: "active", add: "yes" })).toEqual({
      name: "web",
      status: "active",
      add: "yes",
    });
    expect(nodeFiltersFromSearch({ name: " ", status: "gone", add: "1" })).toEqual({});
  });

  it("ID-09 leaves retired nodes out until they are asked for", () => {
    const shown = (filters: Parameters<typeof isShown>[1]) =>
      nodeStatuses.filter((status) => isShown({ name: "rock-1", status }, filters));
    expect(shown({})).toEqual(nodeStatuses.filter((status) => status !== "retired"));
    expect(shown({ status: "retired" })).toEqual(["retired"]);
    expect(shown({ name: "ROCK", status: "active" })).toEqual(["active"]);
    expect(shown({ name: "web" })).toEqual([]);
  });
});
