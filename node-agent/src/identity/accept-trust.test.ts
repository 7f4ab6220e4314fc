import { createHash, createPublicKey } from "node:crypto";
import type { SignedBundle, SignedEnrollment, SignedKeySet, SignedProfile } from "@holdfast/contracts/node/trust";
import { newPrivateKey } from "@holdfast/kit/certificate-request";
import type { SigningKey } from "@holdfast/kit/detached-jws";
import { signStatement } from "@holdfast/kit/signed-statement";
import { describe, expect, it } from "vitest";
import { type FakeAuthority, makeAuthority } from "../../../testkit/agent/fake-authority.ts";
import { newSigningKey } from "../../test/support/fake-api.ts";
import {
  acceptBundle,
  acceptEnrollment,
  acceptKeySets,
  acceptProfile,
  decideTrust,
  type KeySet,
  type Trust,
  takeOffer,
} from "./accept-trust.ts";

const [a, b, c, mallory] = [newSigningKey("a"), newSigningKey("b"), newSigningKey("c"), newSigningKey("mallory")];
const [ours, theirs] = await Promise.all([makeAuthority(), makeAuthority()]);

type Pair = ReturnType<typeof newSigningKey>;
const keySet = (version: number, ...keys: Pair[]): KeySet => ({ version, keys: keys.map(({ jwk }) => jwk) });
const link = (version: number, keys: Pair[], signedBy: SigningKey): SignedKeySet =>
  signStatement([signedBy], {
    kind: "task_key_set",
    version,
    content: { keys: keys.map(({ jwk }) => jwk) },
  }) as SignedKeySet;
const profile = (version: number, nodeApi = "https://nodes.example.com") => ({
  name: "default",
  version,
  endpoints: { node_api: nodeApi },
  resolve: {},
  ca_sha256: [ours.rootSha256],
});
const signedProfile = (by: FakeAuthority, content: ReturnType<typeof profile>, version = content.version) =>
  by.sign({ kind: "environment_profile", version, content }) as SignedProfile;
const bundle = (by: FakeAuthority, version: number, roots: string[]) =>
  by.sign({ kind: "trust_bundle", version, content: { roots } }) as SignedBundle;

describe("key sets", () => {
  it("TASK-03 follow each other link by link, across rotations that a node has missed", () => {
    const present = keySet(5, a);
    const links = [link(6, [a, b], a), link(7, [b], b), link(9, [b, c], b)];
    expect(acceptKeySets(present, links)).toEqual({ accepted: keySet(9, b, c) });
    expect(acceptKeySets(present, []), "nothing was offered").toBeUndefined();
    expect(acceptKeySets(keySet(9, b, c), links), "offered twice").toBeUndefined();
    expect(acceptKeySets(keySet(6, a, b), links), "begun in the middle").toEqual({ accepted: keySet(9, b, c) });
  });

  it("TASK-03 of an agent that knew no versions are the base that the chain goes on from", () => {
    expect(acceptKeySets(keySet(0, a), [link(1_700_000_000, [a, b], a)])).toEqual({
      accepted: keySet(1_700_000_000, a, b),
    });
  });

  it.each<[string, SignedKeySet[]]>([
    ["signed with a key of nobody's", [link(6, [mallory], mallory)]],
    ["signed under a name that the node knows", [link(6, [mallory], { ...mallory, kid: "a" })]],
    ["signed with a key that only the set itself names", [link(6, [a, mallory], mallory)]],
    ["signed with a key of a later set", [link(6, [a, c], b)]],
    ["not signed", [{ ...link(6, [a, b], a), signatures: [] }]],
    ["changed after it was signed", [{ ...link(6, [a, b], a), content: { keys: [mallory.jwk] } }]],
    ["with another version than was signed", [{ ...link(6, [a, b], a), version: 8 }]],
    ["of another kind", [{ ...link(6, [a, b], a), kind: "trust_bundle" as "task_key_set" }]],
    ["older", [link(4, [a], a)]],
    ["other content under the same version", [link(5, [a, mallory], a)]],
    ["with a broken link in the middle", [link(6, [a, b], a), link(7, [c], c), link(8, [b], b)]],
  ])("TASK-03 are refused when %s", (_, offered) => {
    expect(acceptKeySets(keySet(5, a), offered)).toEqual({
      refused: expect.stringContaining("task signing keys"),
    });
  });
});

describe("trust bundles and profiles", () => {
  it("ID-16 are accepted when a root of the node has signed them and their version is higher", () => {
    const roots = [ours.rootPem, theirs.rootPem];
    const offered = bundle(ours, 2, roots);
    expect(acceptBundle({ version: 1, roots: [ours.rootPem] }, offered)).toEqual({
      accepted: { version: 2, roots },
    });
    expect(acceptBundle({ version: 2, roots }, offered)).toBeUndefined();
    expect(acceptProfile(profile(3), signedProfile(ours, profile(4)), [ours.rootPem])).toEqual({
      accepted: profile(4),
    });
    expect(acceptProfile(profile(4), signedProfile(ours, profile(4)), [ours.rootPem])).toBeUndefined();
  });

  it.each<[string, SignedBundle]>([
    ["of another CA", bundle(theirs, 2, [theirs.rootPem, ours.rootPem])],
    ["older", bundle(ours, 0, [ours.rootPem])],
    ["empty", bundle(ours, 2, [])],
    ["without a certificate", bundle(ours, 2, ["none"])],
    ["changed", { ...bundle(ours, 2, [ours.rootPem]), content: { roots: [theirs.rootPem] } }],
  ])("ID-16 a bundle is refused when it is %s", (_, offered) => {
    expect(acceptBundle({ version: 1, roots: [ours.rootPem] }, offered)).toEqual({
      refused: expect.stringContaining("a trust bundle"),
    });
  });

  it.each<[string, SignedProfile]>([
    ["of another CA", signedProfile(theirs, profile(4))],
    ["signed with a task key", signStatement([a], { ...signedProfile(ours, profile(4)) }) as SignedProfile],
    ["older", signedProfile(ours, profile(2))],
    ["of a version that was not signed", signedProfile(ours, profile(9), 4)],
    ["another under the same version", signedProfile(ours, profile(3, "https://elsewhere.example.com"))],
  ])("ID-16 a profile is refused when it is %s", (_, offered) => {
    expect(acceptProfile(profile(3), offered, [ours.rootPem])).toEqual({
      refused: expect.stringContaining("an environment profile"),
    });
  });
});

describe("a heartbeat's answer", () => {
  const present: Trust = {
    keySet: keySet(5, a),
    bundle: { version: 1, roots: [ours.rootPem] },
    profile: profile(3),
  };

  it("TASK-03 changes what is signed, and refuses the rest of it", () => {
    const trust = { key_sets: [link(6, [a, b], a)], profile: signedProfile(theirs, profile(4)) };
    expect(decideTrust(present, { trust })).toEqual({
      accepted: { keySet: keySet(6, a, b) },
      refused: [expect.stringContaining("an environment profile (version 4)")],
    });
    expect(decideTrust(present, {})).toEqual({ accepted: {}, refused: [] });
  });

  it("TASK-03 changes nothing without a signature, in whatever form it comes", () => {
    const unsigned = { verifiers: { keys: [mallory.jwk] }, profile: profile(9) };
    expect(decideTrust(present, unsigned)).toEqual({
      accepted: {},
      refused: [expect.stringContaining("keys"), expect.stringContaining("profile")],
    });
    for (const form of [{ key_sets: 7 }, { key_sets: [null] }, { bundle: [] }, { profile: "x" }]) {
      const { accepted, refused } = decideTrust(present, { trust: form as never });
      expect({ accepted, refusals: refused.length }, JSON.stringify(form)).toEqual({ accepted: {}, refusals: 1 });
    }
  });
});

describe("an agent that takes an offer", () => {
  const agent = {
    node_id: "n",
    org_id: "o",
    node_name: "name",
    api_url: "https://nodes.example.com",
    profile: profile(3),
    verifiers: { keys: [a.jwk] },
  };
  const way = { roots: [ours.rootPem], profile: profile(3) };
  const held = { agent, way, candidates: {} };

  it("ID-16 uses keys at once, and keeps roots and profile as candidates", () => {
    const roots = [ours.rootPem, theirs.rootPem];
    const trust = {
      key_sets: [link(6, [a, b], a)],
      bundle: bundle(ours, 2, roots),
      profile: signedProfile(ours, profile(4)),
    };
    const taken = takeOffer(held, { trust });
    expect(taken).toEqual({
      agent: { ...agent, verifiers: { keys: [a.jwk, b.jwk] }, trust: { key_set: 6, bundle: 2 } },
      candidates: { roots, profile: profile(4) },
      refused: [],
    });
    const again = takeOffer({ ...taken, way }, { trust });
    expect(again, "offered until it is in force").toEqual({ ...taken, refused: [] });
    const later = takeOffer({ ...taken, way: { ...way, profile: profile(4) } }, {});
    expect(later.candidates, "no longer offered").toEqual({ roots });
  });

  it("ID-16 goes back to no candidate that is older than the one it has, and loses none by a forged offer", () => {
    const pending = { ...held, candidates: { profile: profile(5) } };
    for (const offered of [signedProfile(ours, profile(4)), signedProfile(theirs, profile(9))]) {
      const { candidates, refused } = takeOffer(pending, { trust: { profile: offered } });
      expect({ candidates, refusals: refused.length }).toEqual({ candidates: pending.candidates, refusals: 1 });
    }
  });
});

describe("what a node begins with", () => {
  const key = newPrivateKey();
  const nodeId = "0190aaaa-0000-7000-8000-000000000001";
  const spki = createPublicKey(key).export({ type: "spki", format: "der" });
  const content = {
    node_id: nodeId,
    key_sha256: createHash("sha256").update(spki).digest("hex"),
    key_set: keySet(5, a),
    bundle: { version: 1, roots: [ours.rootPem] },
    profile: profile(3),
  };
  const answer = (by: FakeAuthority, changes: Partial<typeof content> = {}) =>
    by.sign({ kind: "enrollment", version: 1, content: { ...content, ...changes } }) as SignedEnrollment;

  it("ID-01 is signed by the root of its token, for the key that it has just made", () => {
    expect(acceptEnrollment([ours.rootPem], answer(ours), { nodeId, key })).toEqual({
      keySet: content.key_set,
      bundle: content.bundle,
      profile: content.profile,
    });
  });

  it("ID-01 is refused when it is missing, of another CA, changed, or the answer to another request", () => {
    const forged = { ...answer(ours), content: { ...content, key_set: keySet(5, mallory) } };
    const refused = [undefined, answer(theirs), forged, answer(ours, { node_id: nodeId.replace("1", "2") })];
    for (const offered of refused) {
      expect(() => acceptEnrollment([ours.rootPem], offered, { nodeId, key })).toThrow(/signed/);
    }
    const another = { nodeId, key: newPrivateKey() };
    expect(() => acceptEnrollment([ours.rootPem], answer(ours), another)).toThrow(/another request/);
  });
});
