import { describe, expect, it } from "vitest";
import { positions } from "../nodes/directory/state.ts";
import { type BundleFacts, decideBundle, decideRecovery, type RecoveryFacts } from "./decide.ts";

const booleans = [false, true];

function* allFacts(): Generator<RecoveryFacts> {
  for (const position of positions)
    for (const connected of booleans)
      for (const cloned of booleans)
        for (const automatic of booleans)
          for (const ofProfile of booleans)
            for (const expired of booleans)
              for (const revoked of booleans)
                for (const superseded of booleans)
                  for (const usedBy of ["nobody", "this_key", "another_key"] as const)
                    yield {
                      node: { position, connected, cloned },
                      token: { ofProfile, expired, revoked, superseded, usedBy },
                      automatic,
                    };
}

const accepted = [...allFacts()].filter((facts) => "accept" in decideRecovery(facts));

describe("what a recovery token gives", () => {
  it("ID-05 is nothing to a retired, revoked, quarantined or cloned node", () => {
    expect(accepted.length).toBeGreaterThan(0);
    expect(new Set(accepted.map(({ node }) => node.position))).toEqual(
      new Set(["enrolling", "active", "draining"]),
    );
    expect(accepted.every(({ node }) => !node.cloned)).toBe(true);
  });

  it("ID-04 is nothing for a token that is old, revoked, of another environment, or followed by a newer one", () => {
    for (const { token } of accepted) {
      expect(token).toMatchObject({ ofProfile: true, expired: false, revoked: false, superseded: false });
    }
  });

  it("ID-04 is nothing for a second key", () => {
    expect(accepted.some(({ token }) => token.usedBy === "another_key")).toBe(false);
    const second = accepted.find(({ token }) => token.usedBy === "this_key");
    expect(second && decideRecovery(second)).toEqual({ accept: "again" });
    expect(second && decideRecovery({ ...second, token: { ...second.token, usedBy: "another_key" } })).toEqual({
      refuse: "recovery_token_used",
    });
  });

  it("ID-05 is nothing while an agent is connected as the node, unless it is the same key again", () => {
    const connected = accepted.filter(({ node }) => node.connected);
    expect(connected.every(({ token }) => token.usedBy === "this_key")).toBe(true);
    expect(connected.length).toBeGreaterThan(0);
  });

  it("ID-04 is nothing where automatic recovery is off", () => {
    expect(accepted.every(({ automatic }) => automatic)).toBe(true);
  });

  it("ID-05 is a new identity in every other case", () => {
    const should = [...allFacts()].filter(
      ({ node, token, automatic }) =>
        automatic &&
        ["enrolling", "active", "draining"].includes(node.position) &&
        !(node.cloned || token.expired || token.revoked || token.superseded) &&
        token.ofProfile &&
        (token.usedBy === "this_key" || (token.usedBy === "nobody" && !node.connected)),
    );
    expect(accepted).toEqual(should);
  });

  it("ID-05 says first what operators decided about the node", () => {
    const bad = {
      ofProfile: false,
      expired: true,
      revoked: true,
      superseded: true,
      usedBy: "another_key",
    } as const;
    const refusal = (position: RecoveryFacts["node"]["position"]) =>
      decideRecovery({ node: { position, connected: true, cloned: true }, token: bad, automatic: false });
    expect(refusal("retired")).toEqual({ refuse: "node_retired" });
    expect(refusal("revoked")).toEqual({ refuse: "identity_revoked" });
    expect(refusal("quarantined")).toEqual({ refuse: "node_quarantined" });
  });
});

function* allBundleFacts(): Generator<BundleFacts> {
  for (const position of positions)
    for (const cloned of booleans)
      for (const expired of booleans)
        for (const revoked of booleans)
          for (const usedBy of ["nobody", "this_key", "another_key"] as const)
            yield { node: { position, cloned }, bundle: { expired, revoked, usedBy } };
}

describe("what a recovery bundle gives", () => {
  it("ID-07 is a new identity for the key that uses it first, in every case in which operators did not decide otherwise", () => {
    const all = [...allBundleFacts()];
    const accepted = all.filter((facts) => "accept" in decideBundle(facts));
    const should = all.filter(
      ({ node, bundle }) =>
        ["enrolling", "active", "draining"].includes(node.position) &&
        !(node.cloned || bundle.expired || bundle.revoked) &&
        bundle.usedBy !== "another_key",
    );
    expect(accepted).toEqual(should);
    for (const facts of accepted) {
      expect(decideBundle(facts)).toEqual({ accept: facts.bundle.usedBy === "this_key" ? "again" : "first" });
    }
  });

  it.for([
    ["retired", "node_retired"],
    ["revoked", "identity_revoked"],
    ["quarantined", "node_quarantined"],
  ] as const)("ID-07 says first what operators decided: %s", ([position, refuse]) => {
    const bundle = { expired: true, revoked: true, usedBy: "another_key" } as const;
    expect(decideBundle({ node: { position, cloned: false }, bundle })).toEqual({ refuse });
  });

  it("ID-07 says that it was revoked, used or has expired", () => {
    const node = { position: "active", cloned: false } as const;
    const bundle = { expired: true, revoked: true, usedBy: "another_key" } as const;
    expect(decideBundle({ node, bundle })).toEqual({ refuse: "bundle_revoked" });
    expect(decideBundle({ node, bundle: { ...bundle, revoked: false } })).toEqual({ refuse: "bundle_used" });
    expect(decideBundle({ node, bundle: { ...bundle, revoked: false, usedBy: "this_key" } })).toEqual({
      refuse: "bundle_expired",
    });
    expect(decideBundle({ node: { ...node, cloned: true }, bundle })).toEqual({ refuse: "node_quarantined" });
  });
});
