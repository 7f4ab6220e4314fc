// Signs tasks with Ed25519. Keys are named by kid; every replica reads them again in the background, and when a
// node names one that it does not know. signing-keys.ts defines when a key signs and verifies.

import type { KeyObject } from "node:crypto";
import type { SignedExecution } from "@holdfast/contracts/execution/frames";
import type { VerifierKeys } from "@holdfast/contracts/node/protocol";
import type { SignedTask } from "@holdfast/contracts/node/signed-task";
import type { SignedKeySet } from "@holdfast/contracts/node/trust";
import { canonicalJson } from "@holdfast/kit/canonical-json";
import { signDetached } from "@holdfast/kit/detached-jws";
import type { Log } from "@holdfast/service/log";
import type { Sql, Tx } from "../database/connect.ts";
import type { Keyring } from "../mechanisms/sealing/keyring.ts";
import { hasKids, linksAfter, publishKeySet, selectKeySets } from "./key-sets.ts";
import {
  addFirstKey,
  addNextKey,
  openPrivateKey,
  type SigningKeyRow,
  selectSigningKeys,
  type VerifierKey,
  verifierKey,
} from "./signing-keys.ts";

export type TaskSigner = {
  /** Tasks of nodes, and executions of agents: the latter name their purpose, so neither can be taken for the other. */
  sign(statement: SignedTask | SignedExecution): string;
  /** Every key that an active task may be signed with. */
  verifiers(): VerifierKeys;
  /** For agents that check no signed sets: set when the node's keys differ. Keys are read again first if a kid is unknown here. */
  verifiersBeyond(kids: readonly string[]): Promise<VerifierKeys | undefined>;
  /** The newest signed set, with which a node starts. */
  keySet(): SignedKeySet;
  /** The signed sets between the node's and the newest. They are read again first if the node's version is unknown here. */
  keySetsAfter(node: { version: number; kids: readonly string[] }): Promise<readonly SignedKeySet[]>;
  /** Creates the next key and publishes its set; call `refresh` after the commit. Refuses with key_rotation_too_soon. */
  rotate(tx: Tx): Promise<SigningKeyRow>;
  refresh(): Promise<void>;
};

type Key = SigningKeyRow & { privateKey: KeyObject; verifier: VerifierKey };

export async function openTaskSigner(
  system: Sql,
  keyring: Keyring,
  options: { log: Log; now?: () => number },
): Promise<TaskSigner> {
  const { log, now = Date.now } = options;
  let keys: Key[] = [];
  let sets: SignedKeySet[] = [];

  const load = async () => {
    const known = new Map(keys.map((key) => [key.kid, key]));
    const loaded: Key[] = [];
    for (const row of await selectSigningKeys(system)) {
      const privateKey = known.get(row.kid)?.privateKey ?? (await openPrivateKey(keyring, row.kid));
      const verifier = known.get(row.kid)?.verifier ?? verifierKey(row.kid, privateKey);
      loaded.push({ ...row, privateKey, verifier });
    }
    keys = loaded;
    await loadSets();
    const newest = sets.at(-1);
    if (newest && hasKids(newest, loaded)) return;
    // A key has ended, or the keys are older than this table.
    await system.begin((tx) => publishKeySet(tx, keyring));
    await loadSets();
  };
  const loadSets = async () => {
    sets = [...sets, ...(await selectKeySets(system, keyring, sets.at(-1)))];
  };
  const newestSet = () => {
    const newest = sets.at(-1);
    if (!newest) throw new Error("there is no set of task signing keys");
    return newest;
  };

  const living = () => keys.filter((key) => key.verify_until === null || key.verify_until.getTime() > now());

  await system.begin((tx) => addFirstKey(tx, keyring));
  await load();
  let reading: Promise<void> | undefined;
  let readingAgain: Promise<void> | undefined;
  // One at a time and at most one behind it, however many nodes name a key that is not known here.
  const refresh = (): Promise<void> => {
    if (reading) {
      readingAgain ??= reading.then(() => {
        readingAgain = undefined;
        return refresh();
      });
      return readingAgain;
    }
    reading = load()
      .catch((error: unknown) => log.warn({ err: error }, "could not refresh the task signing keys"))
      .finally(() => {
        reading = undefined;
      });
    return reading;
  };

  return {
    sign(statement) {
      const key = signingKey(living(), now());
      if (!key) throw new Error("there is no key to sign tasks with");
      return signDetached(key, canonicalJson(statement));
    },
    verifiers: () => ({ keys: living().map((key) => key.verifier) }),
    async verifiersBeyond(kids) {
      if (kids.some((kid) => !keys.some((key) => key.kid === kid))) await refresh();
      const present = living();
      const same = present.length === kids.length && present.every((key) => kids.includes(key.kid));
      return same ? undefined : { keys: present.map((key) => key.verifier) };
    },
    keySet: newestSet,
    async keySetsAfter(node) {
      if (node.version > newestSet().version) await refresh();
      return node.version === newestSet().version ? [] : linksAfter(sets, node);
    },
    async rotate(tx) {
      const row = await addNextKey(tx, keyring);
      await publishKeySet(tx, keyring);
      return row;
    },
    refresh,
  };
}

/** The newest key that may sign now. If there is none, the first, so that a clock that is behind does not stop signing. */
export function signingKey<K extends Pick<SigningKeyRow, "sign_from">>(
  keys: readonly K[],
  now: number,
): K | undefined {
  return keys.findLast((one) => one.sign_from.getTime() <= now) ?? keys[0];
}
