// Certificates of nodes as the api's own CA makes them, for any node and any time.

import { type Authority, openAuthority } from "../../control-plane/src/identity/authority.ts";
import { readKeyRequest } from "../../control-plane/src/identity/requests.ts";
import { openKeyring } from "../../control-plane/src/mechanisms/sealing/keyring.ts";
import { openRoles } from "../database/database.ts";
import type { TestApi } from "./api.ts";
import { makeKeyRequest } from "./nodes.ts";

/** The CA of a running test api. */
export async function authorityOf(api: Pick<TestApi, "database">): Promise<Authority> {
  const { system } = openRoles(api.database);
  const current = { id: "local-1", key: Buffer.alloc(32, 7) };
  const keyring = await openKeyring(system, { current, previous: undefined });
  const authority = await openAuthority(system, keyring, new Date());
  if (!authority) throw new Error("the api has no CA");
  return authority;
}

export async function certificateFor(nodeId: string, issuer: Authority, at = new Date()) {
  const { key, csr } = await makeKeyRequest();
  const { publicKey } = readKeyRequest(csr);
  const { chain } = issuer.issueToNode({ id: nodeId, publicKey }, at);
  return { cert: chain, key };
}
