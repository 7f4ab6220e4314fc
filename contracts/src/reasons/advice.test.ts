import { describe, expect, it } from "vitest";
import { adviceFor } from "./advice.ts";
import { type ReasonCode, reasonCodes, reasons } from "./catalogue.ts";

describe("advice for a node", () => {
  it("DRIFT-15 names the node in every command", () => {
    expect(adviceFor("rock-1", "Run `a <id>`, then `b --node <id>`.")).toBe(
      "Run `a rock-1`, then `b --node rock-1`.",
    );
  });

  it("takes a name literally", () => {
    expect(adviceFor("$&", "`a <id>`")).toBe("`a $&`");
  });

  it("DRIFT-15 leaves no place for the node open, whatever the reason", () => {
    const withNode = reasonCodes.filter((code: ReasonCode) => reasons[code].nextStep.includes("<id>"));
    expect(withNode.length).toBeGreaterThan(3);
    for (const code of withNode) {
      const advice = adviceFor("rock-1", reasons[code].nextStep);
      expect(advice).toContain("rock-1");
      expect(advice).not.toContain("<id>");
    }
  });
});
