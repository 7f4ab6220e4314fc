import type { RecoveryBundle } from "@holdfast/contracts/node/recovery-bundle";
import { describe, expect, it } from "vitest";
import { type HostState, isGivenUp, type PastBundle, refusalOf } from "./decide.ts";

const NOW = Date.parse("2026-03-04T05:06:07Z");
const own = { id: "a".repeat(36), name: "gpu-1" };
const other = { id: "b".repeat(36), name: "gpu-2" };
const bundle = (expiresAt = NOW + 1): RecoveryBundle =>
  ({
    content: {
      ...{ bundle_id: "this", seq: 5, node: { ...own, org_id: "org" } },
      expires_at: new Date(expiresAt).toISOString(),
    },
  }) as unknown as RecoveryBundle;
const past = (changes: Partial<PastBundle>): PastBundle => ({
  ...{ id: "another", seq: 4, node_id: own.id, at: "then", reverted: null, ...changes },
});
const host = (changes: Partial<HostState> = {}): HostState => ({
  ...{ node: own, wanted: undefined, newState: false, past: [], now: NOW, ...changes },
});
const codeOf = (changes: Partial<HostState>, expiresAt?: number) =>
  refusalOf(bundle(expiresAt), host(changes))?.code;

describe("whether a bundle may be applied", () => {
  it.for([
    ["ID-07 is its own node's", {}, undefined],
    ["ID-07 is named by id", { wanted: own.id }, undefined],
    ["ID-07 is named by its name", { wanted: own.name }, undefined],
    ["ID-07 is another node", { node: other }, "bundle_wrong_host"],
    [
      "ID-07 is another node, whatever is said",
      { node: other, newState: true, wanted: own.id },
      "bundle_wrong_host",
    ],
    ["ID-07 is named as another node", { wanted: other.id }, "bundle_wrong_host"],
    ["ID-08 has no state", { node: undefined }, "bundle_no_state"],
    ["ID-08 has no state, and nobody says so", { node: undefined, wanted: own.id }, "bundle_no_state"],
    ["ID-08 has no state, and is not named", { node: undefined, newState: true }, "bundle_no_state"],
    ["ID-08 has no state, and is named", { node: undefined, newState: true, wanted: own.name }, undefined],
    ["ID-07 has applied it", { past: [past({ id: "this", seq: 5 })] }, "bundle_already_applied"],
    ["ID-07 has given it up before", { past: [past({ id: "this", seq: 5, reverted: "refused" })] }, undefined],
    ["ID-07 has applied a newer one", { past: [past({ seq: 6 })] }, "bundle_older"],
    ["ID-07 has given up a newer one", { past: [past({ seq: 6, reverted: "refused" })] }, undefined],
    ["ID-07 has applied an older one", { past: [past({ seq: 4 })] }, undefined],
    ["ID-09 has applied one as another node", { past: [past({ seq: 6, node_id: other.id })] }, undefined],
  ] as const)("on a host that %s", ([, changes, code]) => {
    expect(codeOf({ ...changes } as Partial<HostState>)).toBe(code);
  });

  it("ID-07 ends when it expires, to the millisecond", () => {
    expect(codeOf({}, NOW + 1)).toBeUndefined();
    expect(codeOf({}, NOW)).toBe("bundle_expired");
  });

  it("ID-07 says what to type where only a name is missing", () => {
    expect(refusalOf(bundle(), host({ node: undefined }))?.nextStep).toContain(`--new-state --node ${own.id}`);
  });
});

describe("a bundle whose trial failed", () => {
  const facts = { code: undefined, expiresAt: NOW + 1, hasIdentity: false, now: NOW };

  it.for([
    "bundle_used",
    "bundle_revoked",
    "bundle_expired",
    "bundle_unknown",
    "node_retired",
    "identity_revoked",
  ])("ID-07 is given up when the server says so for good: %s", (code) => {
    for (const hasIdentity of [false, true]) expect(isGivenUp({ ...facts, code, hasIdentity })).toBe(true);
  });

  it.for([undefined, "rate_limit_exceeded", "ca_unavailable", "host_clock_skew", "server_clock_skew"])(
    "ID-07 is tried again after anything else: %s",
    (code) => {
      expect(isGivenUp({ ...facts, code })).toBe(false);
    },
  );

  it("ID-07 is given up when it expired before the server was reached, and not once it has brought an identity", () => {
    expect(isGivenUp({ ...facts, now: NOW + 1 })).toBe(true);
    expect(isGivenUp({ ...facts, now: NOW + 1, hasIdentity: true })).toBe(false);
  });
});
