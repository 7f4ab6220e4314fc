// Parameters as people type them.

import { UsageError } from "@holdfast/kit/settings";
import { describe, expect, it } from "vitest";
import { readParams } from "./params.ts";

const schema = { properties: { echo: { type: "string" }, hold_ms: { type: "integer" } } };

describe("the parameters of a task", () => {
  it.for([
    [{}, {}],
    [{ params: '{"hold_ms": 5}' }, { hold_ms: 5 }],
    [{ param: ["hold_ms=5", "echo=5"] }, { hold_ms: 5, echo: "5" }],
    [{ param: ["echo=a=b"] }, { echo: "a=b" }],
    [{ param: ["echo="] }, { echo: "" }],
    [{ param: ['list=["a","b"]', "flag=true", "word=reef"] }, { list: ["a", "b"], flag: true, word: "reef" }],
    [{ params: '{"hold_ms": 5}', param: ["hold_ms=6"] }, { hold_ms: 6 }],
  ] as const)("TASK-07 are read from %j", ([options, expected]) => {
    const { param, ...rest } = options as { params?: string; param?: readonly string[] };
    expect(readParams({ ...rest, ...(param ? { param: [...param] } : {}) }, schema)).toEqual(expected);
  });

  it("TASK-07 without a known schema are JSON where they can be", () => {
    expect(readParams({ param: ["echo=5", "word=reef"] }, undefined)).toEqual({ echo: 5, word: "reef" });
  });

  it.for([
    [{ params: "{" }, "not JSON"],
    [{ params: "[1]" }, "not an object"],
    [{ params: "null" }, "not an object"],
    [{ param: ["hold_ms"] }, "key=value"],
    [{ param: ["=5"] }, "key=value"],
  ] as const)("TASK-07 are refused as %j", ([options, complaint]) => {
    const { param, ...rest } = options as { params?: string; param?: readonly string[] };
    const read = () => readParams({ ...rest, ...(param ? { param: [...param] } : {}) }, schema);
    expect(read).toThrow(UsageError);
    expect(read).toThrow(complaint);
  });
});
