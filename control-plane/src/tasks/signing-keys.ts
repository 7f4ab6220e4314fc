// The keys that sign tasks, as rows. A key verifies from its creation on and signs a little later, when every connected
// node has received it; it verifies until no task signed with it can be active. The keys themselves are sealed.

import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, randomBytes } from "node:crypto";
import { ApiError } from "@holdfast/contracts/errors";
import { MOST_VERIFIER_KEYS } from "@holdfast/contracts/node/limits";
import type { VerifierKeys } from "@holdfast/contracts/node/protocol";
import { UsageError } from "@holdfast/kit/settings";
import type { Queryable, Tx } from "../database/connect.ts";
import type { Keyring } from "../mechanisms/sealing/keyring.ts";

export type VerifierKey = VerifierKeys["keys"][number];

export type SigningKeyRow = {
  kid: string;
  created_at: Date;
  sign_from: Date;
  /** Null: it has no successor yet. */
  verify_until: Date | null;
};

/** Several heartbeats, and a refresh of every replica. */
const SIGNS_AFTER = "2 minutes";
/** Added to the longest time that a task may wait, because clocks differ. */
const VERIFIES_FOR = "2 days";
/** Any constant will do, as long as nothing else in the database uses it. */
const LOCK = 4_017_266_302;

/** In the order in which they sign. */
export async function selectSigningKeys(db: Queryable): Promise<SigningKeyRow[]> {
  return db<SigningKeyRow[]>`
    SELECT kid, created_at, sign_from, verify_until FROM task_signing_keys
    WHERE verify_until IS NULL OR verify_until > now() ORDER BY sign_from, kid`;
}

/** The first key signs at once. Of several replicas that start together, one creates it. */
export async function addFirstKey(tx: Tx, keyring: Keyring): Promise<void> {
  await holdKeys(tx);
  const present = await tx`SELECT FROM task_signing_keys LIMIT 1`;
  if (present.length === 0) await addKey(tx, keyring, "0 seconds");
}

/** Refuses while the last rotation is not over, and while nodes could not hold one key more. */
export async function addNextKey(tx: Tx, keyring: Keyring): Promise<SigningKeyRow> {
  await holdKeys(tx);
  const [waiting] = await tx<
    SigningKeyRow[]
  >`SELECT kid, sign_from FROM task_signing_keys WHERE sign_from > now()`;
  if (waiting) throw tooSoon(`The key ${waiting.kid} of the last rotation does not sign yet.`, waiting.sign_from);
  const living = await selectSigningKeys(tx);
  const [oldest] = living;
  if (oldest?.verify_until && living.length >= MOST_VERIFIER_KEYS) {
    throw tooSoon(`There are ${living.length} keys already, the most that a node holds.`, oldest.verify_until);
  }
  return addKey(tx, keyring, SIGNS_AFTER);
}

/** One transaction at a time, over all replicas. */
export async function holdKeys(tx: Tx): Promise<void> {
  await tx`SELECT pg_advisory_xact_lock(${LOCK})`;
}

function tooSoon(what: string, notBefore: Date): ApiError {
  return new ApiError("key_rotation_too_soon", {
    message: what,
    details: { not_before: notBefore.toISOString() },
  });
}

async function addKey(tx: Tx, keyring: Keyring, signsAfter: string): Promise<SigningKeyRow> {
  const kid = await makeKey(tx, keyring);
  await tx`DELETE FROM task_signing_keys WHERE verify_until <= now()`;
  await tx`
    UPDATE task_signing_keys SET verify_until = now() + ${signsAfter}::interval + ${VERIFIES_FOR}::interval
    WHERE verify_until IS NULL`;
  const [row] = await tx<SigningKeyRow[]>`
    INSERT INTO task_signing_keys (kid, sign_from) VALUES (${kid}, now() + ${signsAfter}::interval)
    RETURNING kid, created_at, sign_from, verify_until`;
  if (!row) throw new Error("the insert returned no row");
  return row;
}

const sealedName = (kid: string) => `task-signing:${kid}`;

async function makeKey(tx: Tx, keyring: Keyring): Promise<string> {
  const kid = randomBytes(9).toString("base64url");
  const { privateKey } = generateKeyPairSync("ed25519");
  await keyring.getOrCreate(sealedName(kid), () => privateKey.export({ type: "pkcs8", format: "der" }), tx);
  return kid;
}

export async function openPrivateKey(keyring: Keyring, kid: string, db?: Queryable): Promise<KeyObject> {
  const der = await keyring.get(sealedName(kid), db);
  if (!der) {
    throw new UsageError(
      `The task signing key "${kid}" is in the database, but not its private part, which the table sealed_keys has. ` +
        "If the database was restored without that table, restore it from a complete backup. Nothing was changed.",
    );
  }
  return createPrivateKey({ key: der, format: "der", type: "pkcs8" });
}

export function verifierKey(kid: string, privateKey: KeyObject): VerifierKey {
  const { x } = createPublicKey(privateKey).export({ format: "jwk" });
  if (x === undefined) throw new Error("an Ed25519 key without its x");
  return { kty: "OKP", crv: "Ed25519", alg: "EdDSA", use: "sig", kid, x };
}
