// The server's side of recovery over a few lists in memory: tokens that count up, each for one key, and the signed time.

import { randomBytes, X509Certificate } from "node:crypto";
import type { EnvironmentProfile, VerifierKeys } from "@holdfast/contracts/node/protocol";
import type { RecoveryToken } from "@holdfast/contracts/node/recovery";
import { type FakeAuthority, keyDigest } from "../../../testkit/agent/fake-authority.ts";

export type RecoverBody = { token: string; csr: string; node_id: string; profile: string; cause: string };

export type FakeRecovery = {
  /** Whether heartbeats get a token; off by default. */
  offers: boolean;
  /** Of the tokens, in milliseconds. */
  lastMs: number;
  serverTime: () => number;
  issue(): RecoveryToken;
  /** For a node that has shown this one; undefined: it is new enough. */
  refresh(shown: number | undefined): RecoveryToken | undefined;
  signedTime(nonce: string): unknown;
  recover(body: RecoverBody): Promise<{ status: number; code: string } | { certificate: string }>;
  /** A later recovery has ended this certificate. */
  hasReplaced(leaf: X509Certificate): boolean;
  /** Every request, in order. */
  requests: RecoverBody[];
  /** Keys that each token was presented with. */
  keysOf(token: string): string[];
  /** Signs responses instead of the real CA. */
  signer: FakeAuthority;
};

type Issued = RecoveryToken & { used?: { key: string; answer: { certificate: string } } };

export function createFakeRecovery(
  authority: FakeAuthority,
  trust: () => { profile: EnvironmentProfile; verifiers: VerifierKeys },
): FakeRecovery {
  const tokens: Issued[] = [];
  let shown = 0;
  let newest: X509Certificate | undefined;
  const iso = (ms: number) => new Date(ms).toISOString();
  const issued = ({ used: _, ...token }: Issued): RecoveryToken => token;

  const fake: FakeRecovery = {
    offers: false,
    lastMs: 86_400_000,
    serverTime: Date.now,
    requests: [],
    signer: authority,
    keysOf: (token) => [
      ...new Set(fake.requests.filter((one) => one.token === token).map(({ csr }) => keyDigest(csr))),
    ],
    issue() {
      const token = {
        token: `hfr_${randomBytes(32).toString("base64url")}`,
        seq: tokens.length + 1,
        profile: trust().profile.name,
        issued_at: iso(fake.serverTime()),
        expires_at: iso(fake.serverTime() + fake.lastMs),
      };
      tokens.push(token);
      return token;
    },
    refresh(seq) {
      shown = Math.max(shown, seq ?? 0);
      const last = tokens.at(-1);
      if (!fake.offers || (last && seq === last.seq)) return undefined;
      return last && !last.used ? issued(last) : fake.issue();
    },
    signedTime: (nonce) =>
      fake.signer.sign({ kind: "server_time", version: 1, content: { time: iso(fake.serverTime()), nonce } }),
    async recover(body) {
      fake.requests.push(body);
      const token = tokens.find((one) => one.token === body.token);
      const key = keyDigest(body.csr);
      if (!token) return { status: 401, code: "recovery_token_unknown" };
      if (token.used?.key === key) return token.used.answer;
      if (token.used) return { status: 410, code: "recovery_token_used" };
      if (token.seq < shown) return { status: 409, code: "recovery_token_superseded" };
      if (Date.parse(token.expires_at) <= fake.serverTime())
        return { status: 410, code: "recovery_token_expired" };
      const certificate = await authority.certify(body.csr, body.node_id);
      newest = new X509Certificate(certificate);
      const { profile, verifiers } = trust();
      const answer = {
        certificate,
        not_before: newest.validFromDate.toISOString(),
        not_after: newest.validToDate.toISOString(),
        node_id: body.node_id,
        org_id: body.node_id,
        node_name: "test-node",
        trust: fake.signer.sign({
          kind: "enrollment",
          version: 1,
          content: {
            node_id: body.node_id,
            key_sha256: key,
            key_set: { version: 1, ...verifiers },
            bundle: { version: 1, roots: [authority.rootPem] },
            profile,
          },
        }),
        recovery: fake.issue(),
      };
      token.used = { key, answer };
      // Those before it are not accepted any more.
      shown = tokens.length;
      return answer;
    },
    hasReplaced: (leaf) =>
      newest !== undefined &&
      leaf.serialNumber !== newest.serialNumber &&
      leaf.validFromDate <= newest.validFromDate,
  };
  return fake;
}
