// One attempt to use a staged bundle: its secret is exchanged for a new identity, which then has to complete a whole round
// trip, a heartbeat and a poll for tasks over mutual TLS. Every step is stored before the next one begins, so an
// interrupted attempt goes on where it was.

import type { AgentSetup, HostFacts } from "@holdfast/contracts/node/protocol";
import type { RecoveryToken } from "@holdfast/contracts/node/recovery";
import { newPrivateKey, privateKeyPem } from "@holdfast/kit/certificate-request";
import { noCounters } from "../core/counters.ts";
import { buildHeartbeat } from "../core/heartbeat.ts";
import { trustInFile } from "../identity/accept-trust.ts";
import { type Identity, parseIdentity } from "../identity/identity-file.ts";
import { renewalDueAt } from "../identity/renew.ts";
import type { StateFiles } from "../identity/state-directory.ts";
import { isSecure } from "../identity/trials.ts";
import { createLinkClient } from "../link/client.ts";
import { LinkFailure } from "../link/failures.ts";
import { lookupBy } from "../link/lookup.ts";
import { requestRecovery, TokenExpired } from "../recovery/request.ts";
import { commit } from "./settle.ts";
import { type Disk, disk, type Staged, writeStaged } from "./staged.ts";

export type TrialHost = {
  facts: () => HostFacts;
  setup: () => Omit<AgentSetup, "urls">;
  instanceId: string;
  bootId: string;
  signal: AbortSignal;
  startedAt: number;
  disk?: Disk;
};

/** Returns it committed. Throws the failure; the previous set is still in force then. */
export async function tryBundle(files: StateFiles, staged: Staged, host: TrialHost): Promise<Staged> {
  const to = host.disk ?? disk;
  let known = staged;
  const keep = (more: Partial<Staged>) => {
    known = { ...known, ...more };
    writeStaged(files, known, to);
    return known;
  };
  const { key } = known.key ? known : keep({ key: privateKeyPem(newPrivateKey()) });
  // An outage may outlast the certificate: the same key gets another one while the bundle is valid.
  if (!known.issued || identityOf(known).certificate.notAfter <= Date.now())
    keep({ issued: await issuedFor(known, key ?? "", host) });
  return commit(files, known, await roundTrip(known, host), to);
}

async function issuedFor(staged: Staged, key: string, host: TrialHost): Promise<NonNullable<Staged["issued"]>> {
  const { node, profile, trust_bundle, api_url, token, issued_at, expires_at } = staged.bundle.content;
  try {
    const { recovered, token: next } = await requestRecovery({
      path: {
        urls: addresses(profile.endpoints["recovery"], profile.endpoints["node_api"], api_url),
        ...{ roots: trust_bundle.roots, lookup: lookupBy(() => profile.resolve ?? {}) },
      },
      token: { token, seq: 0, profile: profile.name, issued_at, expires_at },
      storedKey: () => key,
      node: { id: node.id, profile: profile.name, instanceId: host.instanceId, bootId: host.bootId },
      ...{ cause: "operator_bundle", signal: host.signal },
    });
    return { chain: recovered.identity.chainPem, trust: recovered.trust, token: next ?? null };
  } catch (error) {
    if (!(error instanceof TokenExpired)) throw error;
    const excerpt = `the bundle expired at ${expires_at}, by the server's signed time`;
    throw new LinkFailure({ kind: "answer", status: 410, code: "bundle_expired", excerpt });
  }
}

function identityOf({ key = "", issued }: Staged): Identity {
  return parseIdentity(key + (issued?.chain ?? ""), "bundle.json");
}

/** Returns the address at which it worked. */
async function roundTrip(staged: Staged, host: TrialHost): Promise<string> {
  const { bundle, issued } = staged;
  if (!issued) throw new Error("nothing was issued yet");
  const identity = identityOf(staged);
  const { profile } = issued.trust;
  let first: unknown;
  for (const apiUrl of addresses(profile.endpoints["node_api"], bundle.content.api_url)) {
    try {
      await connectOnce(staged, identity, apiUrl, host);
      return apiUrl;
    } catch (error) {
      first ??= error;
    }
  }
  throw first ?? new Error("the bundle names no https:// address");
}

async function connectOnce(staged: Staged, identity: Identity, apiUrl: string, host: TrialHost): Promise<void> {
  const { bundle, issued, applied } = staged;
  if (!issued) return;
  const { trust, token } = issued;
  const { node, api_url } = bundle.content;
  const client = createLinkClient({
    ...{ nodeId: node.id, instanceId: host.instanceId, bootId: host.bootId, link: "poll", apiUrl },
    credentials: { keyPem: identity.keyPem, chainPem: identity.chainPem, roots: trust.bundle.roots },
    lookup: lookupBy(() => trust.profile.resolve ?? {}),
  });
  try {
    const heartbeat = buildHeartbeat({
      ...{ now: Date.now(), startedAt: host.startedAt, facts: host.facts(), certificate: identity.certificate },
      renewalDueAt: renewalDueAt(identity.certificate, 0.5),
      agent: { node_id: node.id, org_id: node.org_id, node_name: node.name, api_url, ...trustInFile(trust) },
      setup: { ...host.setup(), urls: { node_api: new URL(apiUrl).origin, node_terminal: null } },
      recovery: heldOf(token),
      ...{ running: 0, unsentResults: 0, findings: [], counters: noCounters },
    });
    await client.heartbeat({ ...heartbeat, applied_bundle: applied, holding: [] });
    await client.wait({ seconds: 0, room: 0, holding: [], signal: host.signal });
  } finally {
    client.close();
  }
}

function heldOf(token: RecoveryToken | null) {
  return token && { seq: token.seq, expires_at: token.expires_at };
}

function addresses(...urls: (string | undefined)[]): string[] {
  return [...new Set(urls.filter((url) => url !== undefined))].filter(isSecure);
}
