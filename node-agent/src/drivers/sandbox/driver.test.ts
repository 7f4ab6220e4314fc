import { describe, expect, it } from "vitest";
import { isHeldBack, runIdOf, runTag } from "./driver.ts";

const [agent, other] = ["01a1e13c-bc3d-71c5-9b58-aada3c2346d4", "01a1e13c-bc3d-71c5-9b58-aada3c2346d5"];
const id = "01a1e13c-bc3d-71c5-9b58-000000000001";

describe("the tag of a run", () => {
  it("EXEC-02 leads back to the run, for its own agent only", () => {
    expect(runIdOf(agent, runTag(agent, id))).toBe(id);
    expect(runIdOf(other, runTag(agent, id))).toBeUndefined();
  });

  it.for(["", id, "holdfast", `${runTag(agent, id)}/deeper`, `x${runTag(agent, id)}`, runTag(agent, "..")])(
    "EXEC-02 is nothing else: %j",
    (text) => expect(runIdOf(agent, text)).toBeUndefined(),
  );
});

describe("the limit of the processor", () => {
  it("SBX-02 is hit by a run that was held back in at least half of its periods, and not by a short burst", () => {
    expect(isHeldBack({ periods: 10, throttled: 5 })).toBe(true);
    expect(isHeldBack({ periods: 11, throttled: 5 })).toBe(false);
    expect(isHeldBack({ periods: 4, throttled: 4 })).toBe(false);
    expect(isHeldBack({ periods: 0, throttled: 0 })).toBe(false);
  });
});
