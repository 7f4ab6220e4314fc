import { describe, expect, it } from "vitest";
import { fieldOfPath, formFieldsOf, paramsFrom, startingValues } from "./task-form.ts";

const object = (properties: object, required: string[] = []) => ({
  type: "object",
  properties,
  required,
  additionalProperties: false,
});

describe("the form of a task type's parameters", () => {
  it("TASK-07 makes a control of every simple field", () => {
    const fields = formFieldsOf(
      object(
        {
          echo: { type: "string", maxLength: 200, description: "Comes back." },
          hold_ms: { type: "integer", minimum: 0, maximum: 60_000, default: 0 },
          big: { type: "integer", minimum: -Number.MAX_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER },
          deep: { type: "boolean", default: true },
          level: { enum: ["low", "high"], type: "string" },
          hosts: { type: "array", items: { type: "string" } },
        },
        ["echo", "hold_ms"],
      ),
    );
    expect(fields?.map(({ name, kind, required, hint }) => [name, kind, required, hint])).toEqual([
      ["echo", "text", true, "Comes back."],
      ["hold_ms", "number", false, "From 0 to 60000."],
      ["big", "number", false, ""],
      ["deep", "checkbox", false, ""],
      ["level", "choice", false, ""],
      ["hosts", "lines", false, ""],
    ]);
  });

  it.each([
    ["an object within", object({ inner: object({}) })],
    ["one or the other", object({ either: { anyOf: [{ type: "string" }, { type: "null" }] } })],
    ["numbers to choose from", object({ size: { enum: [1, 2] } })],
    ["any further fields", { type: "object", additionalProperties: { type: "string" } }],
    ["no schema", null],
  ])("TASK-07 leaves %s to JSON", (_, schema) => {
    expect(formFieldsOf(schema)).toBeNull();
  });

  it("TASK-07 sends what was filled in, with its type, and leaves out what was not", () => {
    const fields =
      formFieldsOf(
        object(
          {
            echo: { type: "string" },
            hold_ms: { type: "integer", default: 0 },
            deep: { type: "boolean", default: true },
            twice: { type: "boolean" },
            level: { enum: ["low", "high"], type: "string" },
            hosts: { type: "array", items: { type: "string" } },
          },
          ["level"],
        ),
      ) ?? [];
    const start = startingValues(fields);
    expect(paramsFrom(fields, start)).toEqual({ hold_ms: 0, deep: true, level: "low" });
    expect(paramsFrom(fields, { ...start, hold_ms: "250", deep: false, hosts: " a \n\nb" })).toEqual({
      hold_ms: 250,
      deep: false,
      level: "low",
      hosts: ["a", "b"],
    });
  });

  it.each([
    ["params.hold_ms", "hold_ms"],
    ["hold_ms", "hold_ms"],
    ["params.hosts.0", "hosts"],
    ["hosts[0].name", "hosts"],
    ["params", ""],
  ])("TASK-07 finds the field of %s", (path, field) => {
    expect(fieldOfPath(path)).toBe(field);
  });
});
