// What both ends of a bare connection of mutual TLS need: certificates of the same kind as ours.

import { temporaryAuthority } from "@holdfast/control-plane/identity/authority";
import { readKeyRequest } from "@holdfast/control-plane/identity/requests";
import { certificateRequest, newPrivateKey, privateKeyPem } from "@holdfast/kit/certificate-request";
import { uuidv7 } from "@holdfast/kit/uuid";

export type ServerCredentials = { cert: string; key: string; authorities: string[] };
export type AgentCredentials = { cert: string; key: string; ca: string[] };

export async function bareCredentials(): Promise<{ server: ServerCredentials; agent: AgentCredentials }> {
  const authority = await temporaryAuthority(new Date());
  const key = newPrivateKey();
  const { publicKey } = await readKeyRequest(certificateRequest(key, "bench"));
  const node = await authority.issueToNode({ id: uuidv7(), publicKey }, new Date());
  const server = await authority.issueToServer(["127.0.0.1"], new Date());
  return {
    server: { cert: server.cert, key: server.key, authorities: [...authority.certificates] },
    agent: { cert: node.chain, key: privateKeyPem(key), ca: [...authority.trustBundle] },
  };
}
