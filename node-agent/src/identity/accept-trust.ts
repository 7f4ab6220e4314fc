// Decides whether offered trust may replace what this node has: keys that sign tasks, roots, addresses. The transport is
// not trusted: an offer must be signed by what the node already trusts, and its version must be higher. Pure, and shared
// with simulated agents. Accepted trust is applied elsewhere.

import { createHash, createPublicKey, type KeyObject, X509Certificate } from "node:crypto";
import type { HeartbeatAnswer } from "@holdfast/contracts/node/protocol";
import type {
  EnvironmentProfile,
  SignedBundle,
  SignedEnrollment,
  SignedKeySet,
  SignedProfile,
  VerifierKeys,
} from "@holdfast/contracts/node/trust";
import { canonicalJson } from "@holdfast/kit/canonical-json";
import type { VerifierKeyring } from "@holdfast/kit/detached-jws";
import { isSignedBy, type Signed, type Statement } from "@holdfast/kit/signed-statement";
import { type AgentFile, trustVersions, verifierKeyring } from "./agent-file.ts";
import type { Candidates, Way } from "./trials.ts";
import { digestOf, sha256OfRoot } from "./trust-file.ts";

export type KeySet = VerifierKeys & { version: number };
/** `untried`: the roots of that version, while those before it are still in force. */
export type Bundle = { version: number; roots: readonly string[]; untried?: readonly string[] | undefined };
export type Trust = { keySet: KeySet; bundle: Bundle; profile: EnvironmentProfile };

function trustOf({ agent, way, candidates }: Held): Trust {
  const { key_set, bundle } = trustVersions(agent);
  return {
    keySet: { version: key_set, keys: agent.verifiers.keys },
    bundle: { version: bundle, roots: way.roots, untried: candidates.roots },
    profile: candidates.profile ?? way.profile,
  };
}

/** As the agent's file has it; the roots themselves have a file of their own. */
export function trustInFile(trust: Trust): Required<Pick<AgentFile, "profile" | "verifiers" | "trust">> {
  const { keySet, bundle, profile } = trust;
  return { profile, verifiers: { keys: keySet.keys }, trust: { key_set: keySet.version, bundle: bundle.version } };
}

/** Undefined: the node already has it. */
export type Verdict<T> = { accepted: T } | { refused: string } | undefined;

export type Offer = Pick<HeartbeatAnswer, "trust" | "verifiers" | "profile">;

/** `accepted` has only what changes. */
export type TrustDecision = { accepted: Partial<Trust>; refused: string[] };

type Held = { agent: AgentFile; way: Pick<Way, "roots" | "profile">; candidates: Candidates };

/**
 * What an agent has after the response to a heartbeat. Keys are in force at once, because no connection depends on them. Roots
 * and profile become candidates, which replace nothing before they have worked (trials.ts).
 */
export function takeOffer(held: Held, offer: Offer): Pick<Held, "agent" | "candidates"> & { refused: string[] } {
  const { agent } = held;
  const { profile: pending, ...others } = held.candidates;
  const present = trustOf(held);
  const { accepted, refused } = decideTrust(present, offer);
  // The newest is offered until it is in force. Without an offer, the present one is current.
  const profile = accepted.profile ?? (offer.trust?.profile ? pending : undefined);
  const candidates = {
    ...others,
    ...(accepted.bundle ? { roots: accepted.bundle.roots } : {}),
    ...(profile ? { profile } : {}),
  };
  const { keySet, bundle } = accepted;
  if (!keySet && !bundle) return { agent, candidates, refused };
  const { verifiers, trust } = trustInFile({ ...present, ...accepted });
  return { agent: { ...agent, verifiers, trust }, candidates, refused };
}

/** The whole response to a heartbeat. A refused part changes nothing and does not affect the others. */
export function decideTrust(present: Trust, { trust = {}, verifiers, profile }: Offer): TrustDecision {
  const accepted: Partial<Trust> = {};
  const refused: string[] = [];
  const consider = <K extends keyof Trust>(part: K, verdictOf: () => Verdict<Trust[K]>) => {
    const verdict = attempt(verdictOf);
    if (verdict && "accepted" in verdict) accepted[part] = verdict.accepted;
    else if (verdict) refused.push(verdict.refused);
  };
  const { key_sets: keySets, bundle, profile: signedProfile } = trust;
  if (keySets) consider("keySet", () => acceptKeySets(present.keySet, keySets));
  if (bundle) consider("bundle", () => acceptBundle(present.bundle, bundle));
  if (signedProfile) {
    consider("profile", () => acceptProfile(present.profile, signedProfile, present.bundle.roots));
  }
  if (verifiers) refused.push("task signing keys came without a signature");
  if (profile) refused.push("an environment profile came without a signature");
  return { accepted, refused };
}

/** Until its signature is verified, the response may have any form. */
function attempt<T>(verdictOf: () => Verdict<T>): Verdict<T> {
  try {
    return verdictOf();
  } catch {
    return { refused: "a change of trust has a format that this agent does not support" };
  }
}

/** Link by link: each set is signed with a key of the one before it. Ends at the first that is not. */
export function acceptKeySets(present: KeySet, offered: readonly SignedKeySet[]): Verdict<KeySet> {
  const newest = offered.at(-1);
  if (newest === undefined) return undefined;
  if (newest.version < present.version)
    return { refused: olderThan(present.version, newest, "task signing keys") };
  let known = present;
  for (const link of offered.filter(({ version }) => !(version < present.version))) {
    const { version, keys } = known;
    const what = "task signing keys";
    const verdict = judge(link, {
      kind: "task_key_set",
      what,
      version,
      content: { keys },
      signers: verifierKeyring(known),
    });
    if (verdict && "refused" in verdict) return verdict;
    if (verdict) known = { version: link.version, keys: link.content.keys };
  }
  return known === present ? undefined : { accepted: known };
}

export function acceptBundle(present: Bundle, offered: SignedBundle): Verdict<Bundle> {
  const content = { roots: [...(present.untried ?? present.roots)] };
  const what = "a trust bundle";
  const signers = rootKeyring(present.roots);
  const verdict = judge(offered, { kind: "trust_bundle", what, version: present.version, content, signers });
  if (!verdict || "refused" in verdict) return verdict;
  const { roots } = offered.content;
  if (!areRoots(roots)) return { refused: "a trust bundle contains something else than root certificates" };
  return { accepted: { version: offered.version, roots } };
}

/** The response to a renewal lists roots for agents without support for signed bundles. All others must have them already. */
export function refusedRoots(present: readonly string[], listed: readonly string[]): string[] {
  const known = new Set(present.map(sha256OfRoot));
  return listed.every((root) => known.has(digestOf(root) ?? ""))
    ? []
    : ["roots came with a renewed certificate, without a signature"];
}

export function acceptProfile(
  present: EnvironmentProfile,
  offered: SignedProfile,
  roots: readonly string[],
): Verdict<EnvironmentProfile> {
  const what = "an environment profile";
  const { version } = present;
  const signers = rootKeyring(roots);
  const verdict = judge(offered, { kind: "environment_profile", what, version, content: present, signers });
  if (!verdict || "refused" in verdict) return verdict;
  if (offered.content.version !== offered.version)
    return { refused: `${what} names another version than its signature` };
  return { accepted: offered.content };
}

/** The initial trust of a node, signed by the root of its token, or by a root for recovery. Throws when it is not valid. */
export function acceptEnrollment(
  roots: readonly string[],
  offered: SignedEnrollment | undefined,
  own: { nodeId: string; key: KeyObject },
): Trust {
  if (offered?.kind !== "enrollment" || !isSignedBy(rootKeyring(roots), offered)) {
    throw new Error(
      "the keys, roots and addresses in the response are not signed by a root that this host trusts",
    );
  }
  const { node_id, key_sha256, key_set, bundle, profile } = offered.content;
  if (node_id !== own.nodeId || key_sha256 !== sha256OfKey(own.key)) {
    throw new Error("the keys, roots and addresses in the response were signed for another request");
  }
  return { keySet: key_set, bundle, profile };
}

type Expected = {
  kind: string;
  /** For a person: `a trust bundle`. */
  what: string;
  version: number;
  content: unknown;
  signers: VerifierKeyring;
};

function judge(offered: Signed<Statement>, present: Expected): Verdict<true> {
  const { what, signers } = present;
  if (offered.kind !== present.kind || !Number.isSafeInteger(offered.version)) {
    return { refused: `${what} has a format that this agent does not support` };
  }
  if (offered.version < present.version) return { refused: olderThan(present.version, offered, what) };
  if (offered.version === present.version && isSame(offered.content, present.content)) return undefined;
  if (!isSignedBy(signers, offered)) {
    return { refused: `${what} (version ${offered.version}) came without a signature that this node trusts` };
  }
  if (offered.version === present.version) {
    return { refused: `${what} came with other content than this node has under version ${offered.version}` };
  }
  return { accepted: true };
}

function olderThan(present: number, { version }: { version: number }, what: string): string {
  return `${what} came with version ${version}, older than version ${present} that this node has`;
}

function isSame(one: unknown, other: unknown): boolean {
  try {
    return canonicalJson(one) === canonicalJson(other);
  } catch {
    return false;
  }
}

/** A root signs under the SHA-256 of its certificate. */
export function rootKeyring(roots: readonly string[]): VerifierKeyring {
  return new Map(roots.map((root) => [sha256OfRoot(root), new X509Certificate(root).publicKey]));
}

function areRoots(roots: readonly string[]): boolean {
  try {
    return roots.length > 0 && roots.every((root) => new X509Certificate(root).ca);
  } catch {
    return false;
  }
}

function sha256OfKey(key: KeyObject): string {
  const spki = createPublicKey(key).export({ type: "spki", format: "der" });
  return createHash("sha256").update(spki).digest("hex");
}
