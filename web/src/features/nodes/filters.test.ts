import { describe, expect, it } from "vitest";
import { fleetFilter, isNarrowed, listFilter, nodeFiltersFromSearch } from "./filters.ts";

describe("what the nodes page looks for", () => {
  it("DASH-01 takes from the address what it knows, and nothing else", () => {
    const search = { search: " Rock ", state: "silent", version: "1.4.0", group: "block", add: "yes", x: "1" };
    expect(nodeFiltersFromSearch(search)).toEqual({
      search: "Rock",
      state: "silent",
      version: "1.4.0",
      group: "block",
      add: "yes",
    });
    expect(
      nodeFiltersFromSearch({ search: "", state: "odd", group: "state", attention: "x".repeat(300) }),
    ).toEqual({});
  });

  it("DASH-01 leaves out retired nodes unless they are looked for", () => {
    expect(listFilter({})).toEqual({ state: "present" });
    expect(listFilter({ state: "retired", search: "old", version: "1" })).toEqual({
      state: "retired",
      search: "old",
    });
    expect(listFilter({ state: "not_fine", block: "10.0.0.0/24" })).toEqual({
      state: "not_fine",
      block: "10.0.0.0/24",
    });
  });

  it("DASH-01 asks for the whole picture where nothing narrows it", () => {
    expect(fleetFilter({ group: "version", add: "yes" })).toEqual({});
    expect(
      [{}, { group: "block" as const }, { state: "retired" as const }, { search: "a" }].map(isNarrowed),
    ).toEqual([false, false, true, true]);
  });
});
