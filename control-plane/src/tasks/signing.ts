// Signs tasks with Ed25519. Keys are named by kid; the private halves are sealed in the keyring. A
// new key verifies at once and signs a little later, when every connected node has been told of it
// with a heartbeat; an old one verifies until no task signed with it can be alive.

import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes } from "node:crypto";
import type { VerifierKeys } from "@holdfast/contracts/node-protocol";
import type { SignedTask } from "@holdfast/contracts/signed-task";
import { canonicalJson } from "@holdfast/kit/canonical-json";
import { signDetached } from "@holdfast/kit/detached-jws";
import type { Log } from "@holdfast/service/log";
import type { Sql, Tx } from "../database/connect.ts";
import type { Keyring } from "../sealing/keyring.ts";

export type TaskSigner = {
  sign(task: SignedTask): string;
  /** Every key that a living task may be signed with. */
  verifiers(): VerifierKeys;
  /** For a heartbeat: present when the node's keys are not these. A kid unknown here is looked for first. */
  verifiersBeyond(kids: readonly string[]): Promise<VerifierKeys | undefined>;
  /** Makes the next key; answers with its kid. The present one signs for two more minutes. */
  rotate(): Promise<string>;
  refresh(): Promise<void>;
  stop(): void;
};

type VerifierKey = VerifierKeys["keys"][number];
type KeyRow = { kid: string; public_jwk: VerifierKey; sign_from: Date; verify_until: Date | null };
type Key = KeyRow & { privateKey: KeyObject };

const REFRESH_MS = 60_000;
/** Several heartbeats, and a refresh of every replica. */
const SIGNS_AFTER = "2 minutes";
/** Beyond the longest time a task may wait, for clocks that are off. */
const VERIFIES_FOR = "2 days";
/** Any constant will do, as long as nothing else in the database uses it. */
const LOCK = 4_017_266_302;

export async function openTaskSigner(
  system: Sql,
  keyring: Keyring,
  options: { log: Log; now?: () => number },
): Promise<TaskSigner> {
  const { log, now = Date.now } = options;
  let keys: Key[] = [];

  const load = async () => {
    const rows = await system<KeyRow[]>`
      SELECT kid, public_jwk, sign_from, verify_until FROM task_signing_keys ORDER BY sign_from, kid`;
    const known = new Map(keys.map((key) => [key.kid, key.privateKey]));
    const loaded: Key[] = [];
    for (const row of rows) {
      const privateKey = known.get(row.kid) ?? (await openPrivateKey(keyring, row.kid));
      loaded.push({ ...row, privateKey });
    }
    keys = loaded;
  };

  /** One replica at a time; answers undefined when there is nothing to do. */
  const addKey = async (signsAfter: string, needed: (tx: Tx) => Promise<boolean>) => {
    const kid = randomBytes(9).toString("base64url");
    const added = await system.begin(async (tx) => {
      await tx`SELECT pg_advisory_xact_lock(${LOCK})`;
      if (!(await needed(tx))) return undefined;
      // Sealed first: a public half without its private one would stop every replica.
      const jwk = await makeKey(keyring, kid);
      await tx`DELETE FROM task_signing_keys WHERE verify_until <= now()`;
      await tx`
        UPDATE task_signing_keys SET verify_until = now() + ${signsAfter}::interval + ${VERIFIES_FOR}::interval
        WHERE verify_until IS NULL`;
      await tx`
        INSERT INTO task_signing_keys (kid, public_jwk, sign_from)
        VALUES (${kid}, ${tx.json(jwk)}, now() + ${signsAfter}::interval)`;
      return kid;
    });
    await load();
    return added;
  };

  const living = () => keys.filter((key) => key.verify_until === null || key.verify_until.getTime() > now());

  await addKey("0 seconds", async (tx) => (await tx`SELECT FROM task_signing_keys LIMIT 1`).length === 0);
  const refresh = () =>
    load().catch((error: unknown) => log.warn({ err: error }, "task signing keys were not read again"));
  const timer = setInterval(() => void refresh(), REFRESH_MS);
  timer.unref();

  return {
    sign(task) {
      const key = living().findLast((one) => one.sign_from.getTime() <= now()) ?? living()[0];
      if (!key) throw new Error("there is no key to sign tasks with");
      return signDetached(key, canonicalJson(task));
    },
    verifiers: () => ({ keys: living().map((key) => key.public_jwk) }),
    async verifiersBeyond(kids) {
      if (kids.some((kid) => !keys.some((key) => key.kid === kid))) await refresh();
      const present = living();
      const same = present.length === kids.length && present.every((key) => kids.includes(key.kid));
      return same ? undefined : { keys: present.map((key) => key.public_jwk) };
    },
    async rotate() {
      const kid = await addKey(SIGNS_AFTER, async () => true);
      if (kid === undefined) throw new Error("the key was not made");
      return kid;
    },
    refresh,
    stop: () => clearInterval(timer),
  };
}

const sealedName = (kid: string) => `task-signing:${kid}`;

async function makeKey(keyring: Keyring, kid: string): Promise<VerifierKey> {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  await keyring.getOrCreate(sealedName(kid), () => privateKey.export({ type: "pkcs8", format: "der" }));
  const { x } = publicKey.export({ format: "jwk" });
  if (x === undefined) throw new Error("an Ed25519 key without its x");
  return { kty: "OKP", crv: "Ed25519", alg: "EdDSA", use: "sig", kid, x };
}

async function openPrivateKey(keyring: Keyring, kid: string): Promise<KeyObject> {
  const der = await keyring.get(sealedName(kid));
  if (!der) throw new Error(`the task signing key ${kid} is not in the keyring`);
  return createPrivateKey({ key: der, format: "der", type: "pkcs8" });
}
