import { describe, expect, it } from "vitest";
import { keysFrom } from "./ssh-keys.ts";

const key = (comment = "") => `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ9${comment && ` ${comment}`}`;

describe("pasted SSH keys", () => {
  it("BM-01 takes one per line, with comments and blank lines between", () => {
    expect(keysFrom(`# laptop\n${key("me@laptop")}\n\n  ${key()}  \n`)).toEqual({
      keys: [key("me@laptop"), key()],
    });
    expect(keysFrom("")).toEqual({ keys: [] });
  });

  it.each([
    ["a private key", "-----BEGIN OPENSSH PRIVATE KEY-----", /Line 1 .*keep this one secret/],
    ["options, which could run commands", `${key()}\ncommand="id" ${key()}`, /Line 2 .*options/],
    ["something else", "hello", /Line 1 .*must start with the key type/],
    ["too many", Array(21).fill(key()).join("\n"), /At most 20/],
  ])("BM-01 refuses %s and says why", (_, text, problem) => {
    expect(keysFrom(text).problem).toMatch(problem);
  });
});
