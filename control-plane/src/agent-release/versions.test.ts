import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isAgentVersion, isOlderAgent } from "./versions.ts";

const part = fc.nat({ max: 3 });
const version = fc.tuple(part, part, part);

describe("versions of agents", () => {
  it("DRIFT-15 are compared by their numbers, the first one first", () => {
    fc.assert(
      fc.property(version, version, (a, b) => {
        const weight = ([x, y, z]: readonly number[]) => (x ?? 0) * 10_000 + (y ?? 0) * 100 + (z ?? 0);
        expect(isOlderAgent(a.join("."), b.join("."))).toBe(weight(a) < weight(b));
      }),
    );
    expect(isOlderAgent("0.9.0", "0.10.0")).toBe(true);
    expect(isOlderAgent("1.0.0-rc.1", "1.0.0")).toBe(false);
    expect(isOlderAgent("0.1.0+build.7", "0.1.0")).toBe(false);
  });

  it.for(["", "1", "1.2", "v1.2.3", "1.2.3.4", "1.2.x", "latest", "1.2.3 ", "9999999999.0.0"])(
    "DRIFT-15 nothing follows from %j",
    (text) => {
      expect(isAgentVersion(text)).toBe(false);
      expect(isOlderAgent(text, "0.1.0")).toBeUndefined();
      expect(isOlderAgent("0.1.0", text)).toBeUndefined();
    },
  );
});
