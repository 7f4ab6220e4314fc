import { InvalidArgumentError } from "commander";
import { describe, expect, it } from "vitest";
import { minutesOf } from "./minutes.ts";

describe("--expires", () => {
  it.for([
    ["5", 5],
    ["90m", 90],
    ["12h", 720],
    ["30d", 43_200],
    ["365d", 525_600],
  ] as const)("ID-01 takes %s", ([text, minutes]) => {
    expect(minutesOf(text)).toBe(minutes);
  });

  it.for(["", "0", "-5", "1.5", "5 d", "1w", "30D", "d", "1e3", "99999999"])("ID-01 refuses %j", (text) => {
    expect(() => minutesOf(text)).toThrow(InvalidArgumentError);
  });
});
