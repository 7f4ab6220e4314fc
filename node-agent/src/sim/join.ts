// Enrolls simulated nodes with the agent's own enrollment code: each has a token, a key and a certificate
// of its own. Identities stay in memory: the next run gets new ones for the same nodes.

import https from "node:https";
import { newPrivateKey } from "@holdfast/kit/certificate-request";
import { trustInFile } from "../identity/accept-trust.ts";
import { nodeApiUrl } from "../identity/agent-file.ts";
import { enroll, fetchRoot } from "../identity/enroll.ts";
import { parseEnrollmentToken } from "../identity/enrollment-token.ts";

import type { Character } from "./character.ts";
import type { SimIdentity } from "./memory-identity.ts";

export type SimJoin = (node: { token: string; nodeId?: string; character: Character }) => Promise<SimIdentity>;

export type SimJoiner = { join: SimJoin; close(): void };

/** Over a few shared connections: a join presents no certificate, so any connection can serve any node. */
export function createSimJoiner(options: { apiUrl: string; atOnce: number }): SimJoiner {
  const agent = new https.Agent({ keepAlive: true, maxSockets: options.atOnce });
  const call = { origin: new URL(options.apiUrl).origin, attempts: 4, onRetry() {}, agent };
  const roots = new Map<string, Promise<string>>();
  const rootOf = (sha256: string) => {
    const root = roots.get(sha256) ?? fetchRoot(call, sha256);
    roots.set(sha256, root);
    return root;
  };
  return {
    async join({ token, nodeId, character }) {
      const { text, rootSha256 } = parseEnrollmentToken(token);
      const root = await rootOf(rootSha256);
      const { identity, trust, answer } = await enroll(call, root, {
        token: text,
        key: newPrivateKey(),
        ...(nodeId === undefined ? {} : { nodeId }),
        nodeName: character.facts.hostname,
        facts: character.facts,
      });
      const { org_id, node_name } = answer;
      const joined = { node_id: identity.nodeId, org_id, node_name, api_url: call.origin };
      return { identity, roots: trust.bundle.roots, agent: { ...joined, ...trustInFile(trust) } };
    },
    close: () => agent.destroy(),
  };
}

/** The node-facing address of an installation, from the profile of the first node. */
export function apiUrlOf({ agent }: SimIdentity): URL {
  return new URL(nodeApiUrl(agent, undefined));
}
