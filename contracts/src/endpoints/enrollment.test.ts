import { describe, expect, it } from "vitest";
import { secretPrefix } from "../secrets.ts";
import { createEnrollmentToken, EnrollmentTokenKind, tokenMinutes } from "./enrollment.ts";

const problemsOf = (body: object) =>
  (createEnrollmentToken.body?.safeParse(body).error?.issues ?? []).map(({ path }) => path.join("."));
const id = "01a1e13c-bc3d-71c5-9b58-aada3c2346d4";

describe("enrollment tokens", () => {
  it("ID-01 are told apart from every other secret by their prefix", () => {
    const prefixes = Object.values(secretPrefix);
    expect(new Set(prefixes).size).toBe(prefixes.length);
    for (const prefix of prefixes) expect(prefix).toMatch(/^hf[a-z]_$/);
  });

  it("ID-01 are pairing tokens unless something else is said", () => {
    expect(createEnrollmentToken.body?.parse({})).toEqual({ kind: "pairing" });
  });

  it.for(EnrollmentTokenKind.options)("ID-01 of the kind %s last no longer than it may", (kind) => {
    const lasting = (expires_in_minutes: number) => problemsOf({ kind, node_name: "a", expires_in_minutes });
    const { usual, most } = tokenMinutes[kind];
    expect([lasting(1), lasting(usual), lasting(most)]).toEqual([[], [], []]);
    expect([lasting(0), lasting(1.5), lasting(most + 1)].flat()).toEqual(Array(3).fill("expires_in_minutes"));
  });

  it.for([
    [{ kind: "bootstrap" }, ["node_name"]],
    [{ kind: "bootstrap", node_name: "reef-1" }, []],
    [{ kind: "bootstrap", node_id: id }, []],
    [{ kind: "bootstrap", node_id: id, node_name: "reef-1" }, ["node_name"]],
    [{ node_id: id, node_name: "reef-1" }, ["node_name"]],
    [{ kind: "recovery" }, ["kind"]],
  ] as const)("ID-01 belong to one node if they are bootstrap tokens: %j", ([body, problems]) => {
    expect(problemsOf(body)).toEqual(problems);
  });
});
