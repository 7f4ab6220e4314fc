// The trust published to nodes: keys that sign tasks, roots and addresses, each signed with a key that no ingress has.
// Agents verify it before they replace anything (ADR 15).

import type { EnvironmentProfile, HeartbeatAnswer } from "@holdfast/contracts/node/protocol";
import type { SignedEnrollment, SignedProfile, TrustOffer } from "@holdfast/contracts/node/trust";
import type { NodeServices } from "../../api/context.ts";
import type { Authority } from "../../identity/authority.ts";

/** From a heartbeat. */
type Reported = {
  verifier_kids: readonly string[];
  profile: { name: string; version: number };
  trust?: { key_set: number; bundle: number } | undefined;
};

/** The parts that are newer than the node's; usually none. */
export async function trustFor(
  nodes: NodeServices,
  report: Reported,
): Promise<Pick<HeartbeatAnswer, "trust" | "verifiers" | "profile">> {
  const profile = await nodes.profile(report.profile.version);
  if (!report.trust) return unsignedFor(nodes, report, profile);
  const offer: TrustOffer = {};
  const links = await nodes.keys.keySetsAfter({ version: report.trust.key_set, kids: report.verifier_kids });
  if (links.length > 0) offer.key_sets = [...links];
  const { authority } = nodes;
  if (authority && report.profile.version < profile.version) offer.profile = signedProfile(authority, profile);
  if (authority && report.trust.bundle < authority.bundleVersion) offer.bundle = signedBundle(authority);
  return Object.keys(offer).length === 0 ? {} : { trust: offer };
}

/** For agents that were installed before trust was signed, until they are upgraded. */
async function unsignedFor({ keys }: NodeServices, report: Reported, profile: EnvironmentProfile) {
  const verifiers = await keys.verifiersBeyond(report.verifier_kids);
  const current = report.profile.name === profile.name && report.profile.version === profile.version;
  return { ...(verifiers ? { verifiers } : {}), ...(current ? {} : { profile }) };
}

/** The initial trust of a node, bound to the key of its new certificate (`keySha256`). */
export async function trustAtEnrollment(
  nodes: NodeServices,
  authority: Authority,
  node: { id: string; keySha256: Buffer },
): Promise<SignedEnrollment> {
  const { version, content } = nodes.keys.keySet();
  return authority.signAsRoot({
    kind: "enrollment" as const,
    version: 1,
    content: {
      node_id: node.id,
      key_sha256: node.keySha256.toString("hex"),
      key_set: { version, ...content },
      bundle: { version: authority.bundleVersion, roots: [...authority.trustBundle] },
      profile: await nodes.profile(),
    },
  });
}

const profiles = new WeakMap<EnvironmentProfile, SignedProfile>();

/** Signed once for all nodes: a new version reaches thousands of them within seconds. */
function signedProfile(authority: Authority, profile: EnvironmentProfile): SignedProfile {
  const known = profiles.get(profile);
  if (known) return known;
  const signed = authority.signAsRoot({
    kind: "environment_profile" as const,
    version: profile.version,
    content: profile,
  });
  profiles.set(profile, signed);
  return signed;
}

function signedBundle(authority: Authority) {
  const content = { roots: [...authority.trustBundle] };
  return authority.signAsRoot({ kind: "trust_bundle" as const, version: authority.bundleVersion, content });
}
