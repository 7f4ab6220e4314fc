import { describe, expect, it } from "vitest";
import { waysOf } from "./ways.ts";

const byDns = async (name: string) => {
  if (name !== "nodes.test") throw new Error("not found");
  return [{ address: "10.0.0.5" }, { address: "10.0.0.6" }, { address: "10.0.0.5" }];
};
const addresses = async (endpoints: Record<string, string>, resolve: Record<string, string[]> = {}) =>
  (await waysOf({ endpoints, resolve }, byDns)).map(({ endpoint, address }) => [endpoint, address]);

describe("ways to the node-facing listeners", () => {
  it("ID-11 are the addresses that the names of the profile lead to, each of them", async () => {
    const node_api = "https://nodes.test:18442";
    expect(await addresses({ node_api, public: "https://holdfast.test", registry: "https://r.test" })).toEqual([
      ["node_api", "10.0.0.5"],
      ["node_api", "10.0.0.6"],
    ]);
    expect(await addresses({ node_api }, { "nodes.test": ["192.0.2.7"] })).toEqual([["node_api", "192.0.2.7"]]);
    expect(await addresses({ node_api: "https://127.0.0.1:18442", node_terminal: "https://[::1]:18443" })).toEqual(
      [
        ["node_api", "127.0.0.1"],
        ["node_terminal", "::1"],
      ],
    );
  });

  it("ID-11 include a name that leads nowhere, so that it is reported", async () => {
    expect(await addresses({ node_api: "https://gone.test" })).toEqual([["node_api", null]]);
  });
});
