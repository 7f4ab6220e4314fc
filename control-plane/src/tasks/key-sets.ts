// The chain of signed key sets: which keys verify tasks, from which version on. Nodes follow it link by link. A set is
// published in the transaction that makes a key, and again when a key has ended.

import type { SignedKeySet } from "@holdfast/contracts/node/trust";
import { keyringOf } from "@holdfast/kit/detached-jws";
import { isSignedBy, signStatement } from "@holdfast/kit/signed-statement";
import type { Queryable, Tx } from "../database/connect.ts";
import type { Keyring } from "../mechanisms/sealing/keyring.ts";
import { holdKeys, openPrivateKey, selectSigningKeys, type VerifierKey, verifierKey } from "./signing-keys.ts";

/** More than a node can miss while its certificate is valid, and small enough for one response. */
const MOST_LINKS = 64;

type Row = { version: string; content: SignedKeySet["content"]; signatures: string[] };

/**
 * In order, starting at this set. A row that is not signed with the keys of the set before it was not written by the
 * control plane and is ignored; so is a first set with a key that is not sealed here.
 */
export async function selectKeySets(
  db: Queryable,
  keyring: Keyring,
  after?: SignedKeySet,
): Promise<SignedKeySet[]> {
  const rows = await db<Row[]>`
    SELECT version, content, signatures FROM task_key_sets WHERE version > ${after?.version ?? 0} ORDER BY version`;
  const sets: SignedKeySet[] = [];
  for (const { version, content, signatures } of rows) {
    const set = { kind: "task_key_set" as const, version: Number(version), content, signatures };
    const previous = sets.at(-1) ?? after;
    const signers = previous ?? ((await areSealed(keyring, content.keys, db)) ? set : undefined);
    if (signers && isSignedBy(keyringOf(signers.content.keys), set)) sets.push(set);
  }
  return sets;
}

async function areSealed(keyring: Keyring, keys: readonly VerifierKey[], db: Queryable): Promise<boolean> {
  for (const key of keys) {
    const privateKey = await openPrivateKey(keyring, key.kid, db).catch(() => undefined);
    if (!privateKey || verifierKey(key.kid, privateKey).x !== key.x) return false;
  }
  return true;
}

/** Does nothing while the newest set has exactly the keys that verify now. */
export async function publishKeySet(tx: Tx, keyring: Keyring): Promise<void> {
  await holdKeys(tx);
  const living = await selectSigningKeys(tx);
  const newest = (await selectKeySets(tx, keyring)).at(-1);
  if (newest && hasKids(newest, living)) return;
  const open = (kid: string) => openPrivateKey(keyring, kid, tx);
  const keys = await Promise.all(living.map(async ({ kid }) => verifierKey(kid, await open(kid))));
  // The first set has no predecessor: its own keys sign it, which nodes know that joined before there were sets.
  const signers = (newest?.content.keys ?? keys).map(async ({ kid }) => ({ kid, privateKey: await open(kid) }));
  const { version, content, signatures } = signStatement(await Promise.all(signers), {
    kind: "task_key_set",
    version: nextVersion(newest?.version ?? 0, Date.now()),
    content: { keys },
  });
  await tx`
    INSERT INTO task_key_sets (version, content, signatures)
    VALUES (${version}, ${tx.json(content)}, ${tx.json(signatures)})`;
}

/** Derived from the clock: a database restored from a backup continues above the versions that nodes have received since. */
function nextVersion(newest: number, now: number): number {
  return Math.max(newest + 1, Math.floor(now / 1000));
}

export function hasKids({ content }: SignedKeySet, keys: readonly { kid: string }[]): boolean {
  return (
    content.keys.length === keys.length && keys.every(({ kid }) => content.keys.some((one) => one.kid === kid))
  );
}

/** The sets that a node lacks. A node that reports no version is located in the chain by its keys. */
export function linksAfter(
  sets: readonly SignedKeySet[],
  node: { version: number; kids: readonly string[] },
): readonly SignedKeySet[] {
  const keys = node.kids.map((kid) => ({ kid }));
  const from =
    node.version > 0
      ? sets.findIndex(({ version }) => version > node.version)
      : Math.max(
          0,
          sets.findLastIndex((set) => hasKids(set, keys)),
        );
  return from < 0 ? [] : sets.slice(from, from + MOST_LINKS);
}
