import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { expect, it } from "vitest";
import { connectCommand, parsedTags } from "./connect-command.ts";

it("EXEC-08 is the documented command", () => {
  expect(connectCommand("org.hfx_1", "http://localhost:3001", ["east", "group:alpha"])).toBe(
    "holdfast agent connect --pairing-token org.hfx_1 --api-base http://localhost:3001 --tags east,group:alpha",
  );
});

it("EXEC-08 takes tags apart at commas", () => {
  expect(parsedTags(" east, group:alpha,,east ")).toEqual(["east", "group:alpha"]);
  expect(parsedTags("  ")).toEqual([]);
});

it("EXEC-08 reaches the agent as it was typed, whatever a shell would make of it", () => {
  const tag = fc
    .string({ minLength: 1, maxLength: 20 })
    .filter((text) => /^[^,\0]+$/.test(text) && text.trim() === text);
  fc.assert(
    fc.property(fc.array(tag, { minLength: 1, maxLength: 3 }), (tags) => {
      const command = connectCommand("t", "http://a", tags).replace("holdfast", "printf '%s\\0'");
      const words = execFileSync("/bin/sh", ["-c", command], { encoding: "utf8" }).split("\0");
      expect(words.at(-2)).toBe(tags.join(","));
    }),
    { numRuns: 30 },
  );
});
