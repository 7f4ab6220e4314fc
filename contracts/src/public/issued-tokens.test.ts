import { describe, expect, it } from "vitest";
import { countIssued, type IssuedToken, nodesRejoiningWith } from "./issued-tokens.ts";

const token = (kind: IssuedToken["kind"], name: string | null = null): IssuedToken => ({
  ...{ id: "018f0000-0000-7000-8000-000000000000", kind, name, node_id: null, expires_at: null },
});

describe("tokens that end", () => {
  it.for<[IssuedToken["kind"][], string]>([
    [[], ""],
    [["api_token"], "1 API token"],
    [["invitation", "api_token", "api_token"], "2 API tokens and 1 invitation"],
    [
      ["bootstrap_token", "invitation", "api_token", "pairing_token"],
      "1 API token, 1 pairing token, 1 bootstrap token and 1 invitation",
    ],
  ])("SEC-01 are counted by kind: %j", ([kinds, words]) => {
    expect(countIssued(kinds.map((kind) => token(kind)))).toBe(words);
  });

  it("ID-01 name each node once that rejoins with them, and none that joined with a pairing token", () => {
    const tokens = [
      token("bootstrap_token", "vm-b"),
      token("pairing_token", "vm-c"),
      token("bootstrap_token", "vm-a"),
    ];
    expect(nodesRejoiningWith([...tokens, token("bootstrap_token", "vm-b")])).toEqual(["vm-a", "vm-b"]);
  });
});
