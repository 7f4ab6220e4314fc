import { nodeAttributes, type SharedAttribute, sharedAttributes } from "@holdfast/contracts/endpoints/incidents";
import { describe, expect, it } from "vitest";
import { DIRECT } from "./attributes.ts";
import { presentShared, type Spoken, titleOfCause } from "./words.ts";

const at = (time: string) => new Date(`2026-03-01T${time}:30Z`);
const spoken = (attribute: SharedAttribute, value: string, more: Partial<Spoken> = {}): Spoken => ({
  ...{ attribute, value, nodes: 12, began_at: at("14:02"), closed_at: null },
  ...{ outage_began_at: null, outage_ended_at: null, ...more },
});
const say = (...given: Parameters<typeof spoken>) => presentShared(spoken(...given), "your nodes").sentence;

describe("what is said about several nodes", () => {
  it("DASH-08 names what they share, how many of them are the reader's, and since when", () => {
    expect(say("profile", "default version 3")).toBe(
      "12 of your nodes with profile default version 3 have the same problem since 2026-03-01 14:02 UTC.",
    );
    expect(say("ingress", DIRECT, { nodes: 1, closed_at: at("14:10") })).toBe(
      "1 of your nodes without an ingress in front had the same problem from 2026-03-01 14:02 UTC to 2026-03-01 14:10 UTC.",
    );
    expect(say("fleet", "")).toBe(
      "At least half of the nodes of this installation had the same problem at once. 12 of your nodes have it since 2026-03-01 14:02 UTC.",
    );
  });

  it("DASH-08 has words for every attribute", () => {
    const values = sharedAttributes.map((attribute) => say(attribute, "a-value"));
    expect(new Set(values).size).toBe(sharedAttributes.length);
    for (const attribute of nodeAttributes) expect(say(attribute, "a-value")).toContain("a-value");
  });

  it("DRIFT-04 suspects the control plane, and claims no more than that", () => {
    const suspicion = presentShared(spoken("control_plane", ""), "your nodes");
    expect(suspicion).toMatchObject({ value: null, suspected: true });
    expect(suspicion.sentence).toContain("is suspected");
    expect(say("control_plane", "", { outage_began_at: at("13:50"), outage_ended_at: at("14:00") })).toContain(
      "The control plane was down from 2026-03-01 13:50 UTC to 2026-03-01 14:00 UTC.",
    );
    const reason = "control_plane_unreachable";
    expect(titleOfCause({ reason, attribute: "control_plane" })).toBe("Control plane suspected");
    expect(titleOfCause({ reason, attribute: null })).toBe("Control plane not ready");
  });
});
