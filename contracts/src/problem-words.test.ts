import { describe, expect, it } from "vitest";
import { z } from "zod";
import { problemInWords } from "./problem-words.ts";

describe("what is wrong with a value", () => {
  it.for<[schema: z.ZodType, value: unknown, words: string]>([
    [z.string(), undefined, "is required"],
    [z.string(), 7, "must be a string"],
    [z.int(), 1.5, "must be a whole number"],
    [z.array(z.string()), {}, "must be a list"],
    [z.string().min(8), "nosuch", "must have at least 8 characters"],
    [z.string().min(1), "", "must have at least 1 character"],
    [z.string().max(3), "four", "must have at most 3 characters"],
    [z.array(z.string()).max(1), ["a", "b"], "must have at most 1 entry"],
    [z.number().min(256), 1, "must be at least 256"],
    [z.number().max(5), 6, "must be at most 5"],
    [z.number().gt(0), 0, "must be more than 0"],
    [z.number().lt(9), 9, "must be less than 9"],
    [z.enum(["a", "b", "c"]), "d", "must be a, b or c"],
    [z.literal("x"), "y", "must be x"],
    [z.number().multipleOf(5), 7, "must be a multiple of 5"],
    [z.strictObject({}), { more: 1 }, "has unknown fields: more"],
    [z.email(), "nobody", "must be an email address"],
    [z.string().regex(/^a$/), "b", "does not have the required form"],
    [z.union([z.string(), z.number()]), null, "has none of the allowed forms"],
    [z.string().min(8, "a name of 8 letters"), "short", "a name of 8 letters"],
    [z.string().refine(() => false, "not today"), "x", "not today"],
  ])("is put into words", ([schema, value, words]) => {
    expect(schema.safeParse(value).error?.issues.map(problemInWords)).toEqual([words]);
  });
});
