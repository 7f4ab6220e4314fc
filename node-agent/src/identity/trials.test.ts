import { describe, expect, it } from "vitest";
import { makeAuthority } from "../../../testkit/agent/fake-authority.ts";
import { type Attempt, attempts, contradiction, isDue, type Situation } from "./trials.ts";
import { sha256OfRoot } from "./trust-file.ts";

const [first, second] = await Promise.all([makeAuthority(), makeAuthority()]);
const identity = (serial: string, notBefore = 0) => ({
  nodeId: "n",
  keyPem: "",
  chainPem: "",
  certificate: { serial, notBefore, notAfter: 1_000 },
});
const profile = (version: number, node_api: string) => ({
  name: "default",
  version,
  endpoints: { node_api },
  resolve: {},
  ca_sha256: [sha256OfRoot(first.rootPem)],
});
const [present, published, joined] = ["https://present", "https://published", "https://joined"];
const way = { identity: identity("1"), roots: [first.rootPem], profile: profile(1, present), apiUrl: present };
const calm: Situation = {
  present: way,
  candidates: {},
  joinedAt: joined,
  fixedUrl: undefined,
  connected: true,
  now: 100,
  serverNow: 100,
};
const offered = {
  identity: identity("2"),
  roots: [first.rootPem, second.rootPem],
  profile: profile(2, published),
};
const changes = (all: readonly Attempt[]) => all.map(({ change }) => change);

describe("what is tried before it is used", () => {
  it("ID-16 nothing, while the server offers nothing and the link works", () => {
    expect(attempts(calm)).toEqual([]);
  });

  it("ID-16 each offer by itself, so that a wrong one holds up no other", () => {
    expect(changes(attempts({ ...calm, candidates: offered }))).toEqual([
      { identity: offered.identity },
      { roots: offered.roots },
      { profile: offered.profile },
    ]);
  });

  it("ID-16 the published address once its profile is in force", () => {
    const drifted = { ...way, profile: profile(2, published) };
    expect(changes(attempts({ ...calm, present: drifted }))).toEqual([{ apiUrl: published }]);
  });

  it("ID-16 while the link fails: the address where it joined, and everything together", () => {
    expect(changes(attempts({ ...calm, connected: false }))).toEqual([{ apiUrl: joined }]);
    expect(changes(attempts({ ...calm, connected: false, candidates: offered }))).toEqual([
      { identity: offered.identity },
      { roots: offered.roots },
      { profile: offered.profile },
      { apiUrl: published },
      { apiUrl: joined },
      { ...offered, apiUrl: published },
    ]);
  });

  it("ID-16 no address but the one set on this host, and none without TLS", () => {
    const drifted = { ...calm, connected: false, present: { ...way, profile: profile(2, published) } };
    expect(attempts({ ...drifted, fixedUrl: present })).toEqual([]);
    const clear = { ...drifted, joinedAt: "http://127.0.0.1:3001" };
    expect(changes(attempts(clear))).toEqual([{ apiUrl: published }]);
  });

  it.for([
    [100, 100, 1],
    [99, 100, 0],
    [100, 99, 0],
    [1_001, 100, 0],
    [100, 1_001, 0],
  ] as const)(
    "ID-03 a certificate only while it is valid by both clocks: %d and %d",
    ([now, serverNow, tried]) => {
      const candidates = { identity: identity("2", 100) };
      expect(attempts({ ...calm, candidates, now, serverNow })).toHaveLength(tried);
    },
  );

  it("ID-16 a new offer has a key of its own, so that the pauses of the one before do not hold it up", () => {
    const key = (version: number) =>
      attempts({ ...calm, candidates: { profile: profile(version, published) } })[0]?.key;
    expect(key(2)).not.toBe(key(3));
  });

  it("ID-16 no profile that names none of the trusted roots", () => {
    expect(contradiction(way)).toBeUndefined();
    expect(contradiction({ ...way, roots: offered.roots })).toBeUndefined();
    expect(contradiction({ ...way, roots: [second.rootPem] })).toContain("none of the trusted root certificates");
  });

  it("ID-16 again after pauses that grow, and never longer than a minute while the link fails", () => {
    const due = (count: number, after: number, connected: boolean) =>
      isDue({ count, at: 1_000 }, { connected, now: 1_000 + after });
    expect(isDue(undefined, { connected: true, now: 0 })).toBe(true);
    for (const connected of [true, false]) {
      expect([due(1, 4_999, connected), due(1, 5_000, connected)]).toEqual([false, true]);
      expect([due(2, 9_999, connected), due(2, 10_000, connected)]).toEqual([false, true]);
    }
    expect([due(50, 59_999, false), due(50, 60_000, false)]).toEqual([false, true]);
    expect([due(50, 599_999, true), due(50, 600_000, true)]).toEqual([false, true]);
  });
});
