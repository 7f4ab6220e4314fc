// A secret as it is stored. Organization, id and version are bound to it as associated data: a row that was moved to another
// organization or secret, or put back to an older value, does not open.

import { type Envelope, openEnvelope, sealEnvelope } from "../mechanisms/sealing/envelope.ts";
import { type Keks, kekNamed } from "../mechanisms/sealing/keks.ts";

export type SecretIdentity = { id: string; org_id: string; version: number };
export type SealedSecret = Envelope & { kekId: string };

export const secretContext = ({ id, org_id, version }: SecretIdentity): string =>
  `secret:${org_id}:${id}:${version}`;

/** With a new data key. */
export function sealSecret({ current }: Keks, identity: SecretIdentity, value: string): SealedSecret {
  return { kekId: current.id, ...sealEnvelope(current.key, secretContext(identity), Buffer.from(value)) };
}

/** Throws KekMissing if this process does not have the KEK. */
export function openSecret(keks: Keks, identity: SecretIdentity, { kekId, ...envelope }: SealedSecret): string {
  return openEnvelope(kekNamed(keks, kekId).key, secretContext(identity), envelope).toString();
}
