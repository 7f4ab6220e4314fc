// User data of a lease that contains secrets. It is sealed in the database and in no task: the signed launch names its digest, and the
// host of the VM takes the text over its own authenticated connection, while it launches that VM. Then it is erased.

import { hash, randomBytes } from "node:crypto";
import type { Queryable, Tx } from "../database/connect.ts";
import { openBox, sealBox } from "../mechanisms/sealing/envelope.ts";
import type { Keyring } from "../mechanisms/sealing/keyring.ts";
import { isChangedBy } from "./transitions/sql.ts";

export type UserDataVault = {
  seal(leaseId: string, text: string): Buffer;
  open(leaseId: string, sealed: Buffer): string;
};

/** The lease is bound to the box as associated data: it cannot be moved to another lease. */
export async function openUserDataVault(keyring: Keyring): Promise<UserDataVault> {
  const key = await keyring.getOrCreate("lease-user-data", () => randomBytes(32));
  const context = (leaseId: string) => `lease user data:${leaseId}`;
  return {
    seal: (leaseId, text) => sealBox(key, context(leaseId), Buffer.from(text)),
    open: (leaseId, sealed) => openBox(key, context(leaseId), sealed).toString(),
  };
}

/** In the transaction that stores the lease. */
export async function storeUserData(
  tx: Tx,
  vault: UserDataVault,
  { leaseId, orgId, text }: { leaseId: string; orgId: string; text: string },
): Promise<void> {
  await tx`
    INSERT INTO vm_lease_user_data (lease_id, org_id, sealed, sha256)
    VALUES (${leaseId}, ${orgId}, ${vault.seal(leaseId, text)}, ${hash("sha256", text)})`;
}

const isLaunching = isChangedBy("launch_succeeded");

/** For the host that launches this VM now; undefined for everybody else. */
export async function takeUserData(
  system: Queryable,
  vault: UserDataVault,
  { nodeId, vmId }: { nodeId: string; vmId: string },
): Promise<string | undefined> {
  const [row] = await system<{ lease_id: string; sealed: Buffer }[]>`
    SELECT u.lease_id, u.sealed FROM vm_leases l JOIN vm_lease_user_data u ON u.lease_id = l.id
    WHERE l.vm_id = ${vmId} AND l.host_id = ${nodeId} AND ${isLaunching} AND NOT l.launch_settled`;
  return row && vault.open(row.lease_id, row.sealed);
}

const isWaiting = isChangedBy("place");

/** Of leases that no host has to launch any more. */
export async function eraseUserData(system: Queryable): Promise<number> {
  const { count } = await system`
    DELETE FROM vm_lease_user_data u USING vm_leases l
    WHERE l.id = u.lease_id AND NOT (${isWaiting} OR ${isLaunching} AND NOT l.launch_settled)`;
  return count;
}
