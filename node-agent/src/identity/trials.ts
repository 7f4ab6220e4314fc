// Which untried certificate, CA, profile or address the agent tries next. Nothing that works is replaced by something
// untried: each new one is kept beside the present one until a request with it has succeeded. Pure; time is a parameter.

import type { EnvironmentProfile } from "@holdfast/contracts/node/protocol";
import type { CertificateFacts, Identity } from "./identity-file.ts";
import { sha256OfRoot } from "./trust-file.ts";

/** Everything a connection to the server depends on. */
export type Way = {
  identity: Identity;
  roots: readonly string[];
  profile: EnvironmentProfile;
  apiUrl: string;
};

/** What the server has offered and this agent has not adopted yet. */
export type Candidates = Partial<Pick<Way, "identity" | "roots" | "profile">>;

/** `key` differs for every offer, so that a new one is tried at once, however often another one has failed. */
export type Attempt = { key: string; change: Partial<Way> };

export type Situation = {
  present: Way;
  candidates: Candidates;
  /** Where this node joined. */
  joinedAt: string;
  /** Configured on this host: no other address is tried. */
  fixedUrl: string | undefined;
  /** The present way works. */
  connected: boolean;
  /** By this host's clock, and by the server's as far as it is known. */
  now: number;
  serverNow: number;
};

/**
 * One change at a time, so that a wrong address cannot hold up a new certificate. While the present way fails, also the
 * address where this node joined, and all changes together: after a move, no single one may work alone.
 */
export function attempts(situation: Situation): Attempt[] {
  const { present, connected, fixedUrl, joinedAt } = situation;
  const { identity, roots, profile } = usable(situation);
  const published = (profile ?? present.profile).endpoints["node_api"];
  const addresses = connected ? [present.profile.endpoints["node_api"]] : [published, joinedAt];
  const single: Attempt[] = [
    ...(identity ? [{ key: `certificate ${identity.certificate.serial}`, change: { identity } }] : []),
    ...(roots ? [{ key: `trust bundle ${roots.map(sha256OfRoot).join()}`, change: { roots } }] : []),
    ...(profile ? [{ key: `profile ${profile.name} version ${profile.version}`, change: { profile } }] : []),
    ...(fixedUrl === undefined ? addresses : [])
      .filter((url) => url !== undefined && isSecure(url) && url !== present.apiUrl)
      .filter((url, index, all) => all.indexOf(url) === index)
      .map((apiUrl) => ({ key: `address ${apiUrl}`, change: { apiUrl } as Partial<Way> })),
  ];
  if (connected || single.length < 2) return single;
  const newest = single.filter(({ change }) => change.apiUrl === undefined || change.apiUrl === published);
  const change = Object.assign({}, ...newest.map((one) => one.change)) as Partial<Way>;
  return [...single, { key: newest.map(({ key }) => key).join(" + "), change }];
}

function usable({ candidates, now, serverNow }: Situation): Candidates {
  const { identity, ...others } = candidates;
  return identity && isValidByBoth(identity.certificate, { now, serverNow }) ? { ...others, identity } : others;
}

/** A certificate is not tried before it is valid by this host's clock and by the server's. */
export function isValidByBoth(
  { notBefore, notAfter }: CertificateFacts,
  { now, serverNow }: { now: number; serverNow: number },
): boolean {
  return notBefore <= Math.min(now, serverNow) && Math.max(now, serverNow) <= notAfter;
}

export function isSecure(url: string): boolean {
  return url.startsWith("https://");
}

/** The failures of one attempt so far. `at`: the last one, by the monotonic clock. */
export type Failures = { count: number; at: number };

const FIRST_PAUSE_MS = 5_000;
/** While nothing else works, an agent never waits longer than a minute. */
const LONGEST_PAUSE_MS = { connected: 600_000, disconnected: 60_000 };

export function isDue(failures: Failures | undefined, facts: { connected: boolean; now: number }): boolean {
  if (!failures) return true;
  const longest = facts.connected ? LONGEST_PAUSE_MS.connected : LONGEST_PAUSE_MS.disconnected;
  return facts.now - failures.at >= Math.min(longest, FIRST_PAUSE_MS * 2 ** Math.min(failures.count - 1, 10));
}

/** Why a combination is not tried at all: it could not be read back after a restart. */
export function contradiction({ roots, profile }: Pick<Way, "roots" | "profile">): string | undefined {
  const { ca_sha256 } = profile;
  if (ca_sha256.length === 0 || roots.some((root) => ca_sha256.includes(sha256OfRoot(root)))) return undefined;
  return "the profile names none of the trusted root certificates";
}
