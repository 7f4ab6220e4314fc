import { describe, expect, it } from "vitest";
import { firstSteps } from "./first-steps.ts";

const states = (seen: Parameters<typeof firstSteps>[0]) =>
  Object.fromEntries(firstSteps(seen).map((step) => [step.id, step.state]));

describe("the first steps", () => {
  it("OPS-01 guides a fresh administrator through what is left to do", () => {
    const fresh = { role: "operator", organizationName: "Default", members: 1, tokens: 0, nodes: 0 } as const;
    expect(states(fresh)).toEqual({
      "signed-in": "done",
      name: "open",
      people: "open",
      token: "open",
      node: "open",
    });
    const settled = { ...fresh, organizationName: "Tidewater", members: 2, tokens: 1, nodes: 1 };
    expect(states(settled)).toMatchObject({ name: "done", people: "done", token: "done", node: "done" });
  });

  it("SEC-01 asks nobody for what their role does not allow", () => {
    const asMember = states({ role: "member", organizationName: "Main", members: 3, tokens: 0, nodes: 0 });
    expect(Object.keys(asMember)).toEqual(["signed-in", "token"]);
  });
});
