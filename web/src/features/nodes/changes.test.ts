import { NodeChange } from "@holdfast/contracts/endpoints/nodes";
import { nodeStatuses } from "@holdfast/contracts/node/protocol";
import { describe, expect, it } from "vitest";
import { changeWords, offeredChanges } from "./changes.ts";

describe("what can be done to a node", () => {
  it("ID-09 offers in every state what leads out of it, and nothing for a retired one", () => {
    const table = Object.fromEntries(
      nodeStatuses.map((status) => [status, offeredChanges(status, { revoked: false })]),
    );
    expect(table).toEqual({
      enrolling: ["fence", "revoke", "retire"],
      active: ["drain", "fence", "revoke", "retire"],
      draining: ["reactivate", "fence", "revoke", "retire"],
      quarantined: ["reactivate", "revoke", "retire"],
      retired: [],
    });
  });

  it("ID-09 does not offer to reactivate a revoked node: it needs a new identity first", () => {
    expect(offeredChanges("quarantined", { revoked: true })).toEqual(["retire"]);
  });

  it("ID-09 says of every change what it does", () => {
    for (const change of NodeChange.options) expect(changeWords[change].effects.length, change).toBeGreaterThan(0);
  });
});
