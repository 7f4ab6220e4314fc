import { uuidv7 } from "@holdfast/kit/uuid";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { belongsTo, parseLine, presentLine } from "./lines.ts";

const from = { process: "api", replica: uuidv7() } as const;
const [ours, theirs, node, foreignNode] = [uuidv7(), uuidv7(), uuidv7(), uuidv7()];
const line = (content: object) => ({ at: 0, ...from, content: content as Record<string, unknown> });
const owned = new Set([node, "run:step:1"]);

describe("log lines", () => {
  it("SEC-01 belong to an organization by its id, or by what they name, and never if they name anything else", () => {
    const org = fc.constantFrom(undefined, ours, theirs);
    const named = fc.constantFrom(undefined, node, foreignNode);
    const requested = fc.constantFrom(undefined, "run:step:1", "run:step:2");
    fc.assert(
      fc.property(org, named, requested, (org_id, node_id, request_id) => {
        const content = Object.fromEntries(
          Object.entries({ org_id, node_id, request_id }).filter(([, value]) => value !== undefined),
        );
        const foreign = org_id === theirs || node_id === foreignNode || request_id === "run:step:2";
        const proves = org_id === ours || node_id === node || request_id === "run:step:1";
        expect(belongsTo(line(content), ours, owned)).toBe(!foreign && proves);
      }),
    );
  });

  it("DASH-08 are shown with everything on them, and what is not a line is left out", () => {
    const text = JSON.stringify({
      ...{
        level: "warn",
        time: "2030-01-01T00:00:00.000Z",
        process: "api",
        correlation_id: "c-1",
        msg: "refused",
      },
      status: 409,
    });
    const parsed = parseLine(text, from);
    expect(parsed && presentLine(parsed)).toEqual({
      ...{ at: "2030-01-01T00:00:00.000Z", ...from, level: "warn", message: "refused", correlation_id: "c-1" },
      fields: { status: 409 },
    });
    for (const other of ["", "not json", "{}", '{"time":"never"}', "null"])
      expect(parseLine(other, from)).toBeUndefined();
  });
});
