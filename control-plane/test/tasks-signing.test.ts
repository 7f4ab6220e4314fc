// Signatures of tasks: made here, checked by anything that knows JWS; keys that follow each other
// without a task that nobody can verify.

import { createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import type { SignedTask } from "@holdfast/contracts/node/signed-task";
import type { SignedKeySet } from "@holdfast/contracts/node/trust";
import { canonicalJson } from "@holdfast/kit/canonical-json";
import { keyringOf, verifyDetached } from "@holdfast/kit/detached-jws";
import { isSignedBy, signStatement } from "@holdfast/kit/signed-statement";
import { uuidv7 } from "@holdfast/kit/uuid";
import { createLog } from "@holdfast/service/log";
import { flattenedVerify, importJWK } from "jose";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createTestDatabase, openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";
import { type Keyring, openKeyring } from "../src/mechanisms/sealing/keyring.ts";
import { openTaskSigner, type TaskSigner } from "../src/tasks/signing.ts";

const log = createLog({ process: "test", level: "silent" });
let system: Sql;
let superuser: Sql;
let keyring: Keyring;
let clock: number;

beforeAll(async () => {
  ({ system, superuser } = openRoles(await createTestDatabase()));
  keyring = await openKeyring(system, { current: { id: "test", key: Buffer.alloc(32, 7) } });
});
beforeEach(async () => {
  await superuser`DELETE FROM task_signing_keys`;
  clock = Date.now();
});

async function newSigner(): Promise<TaskSigner> {
  const signer = await openTaskSigner(system, keyring, { log, now: () => clock });
  return signer;
}

const task: SignedTask = {
  task_id: uuidv7(),
  node_id: uuidv7(),
  task_type: "node.noop",
  params: { echo: "ä €", hold_ms: 0 },
  expires_at: "2030-01-01T00:00:00.000Z",
};
async function rotate(signer: TaskSigner): Promise<string> {
  const { kid } = (await system.begin((tx) => signer.rotate(tx))) as { kid: string };
  await signer.refresh();
  return kid;
}

const kidOf = (jws: string) =>
  (JSON.parse(Buffer.from(jws.split(".")[0] ?? "", "base64url").toString()) as { kid: string }).kid;

function keysOf(signer: TaskSigner): Map<string, KeyObject> {
  return new Map(
    signer.verifiers().keys.map((jwk) => [jwk.kid, createPublicKey({ key: { ...jwk }, format: "jwk" })]),
  );
}

describe("signing", () => {
  it("TASK-03 signs what its own verifier set verifies, and nothing that was changed", async () => {
    const signer = await newSigner();
    const jws = signer.sign(task);
    expect(verifyDetached(keysOf(signer), canonicalJson(task), jws)).toBe("valid");
    for (const change of [
      { task_id: uuidv7() },
      { node_id: uuidv7() },
      { task_type: "node.other" },
      { params: { echo: "other", hold_ms: 0 } },
      { expires_at: "2031-01-01T00:00:00.000Z" },
    ]) {
      expect(verifyDetached(keysOf(signer), canonicalJson({ ...task, ...change }), jws)).toBe("invalid");
    }
  });

  it("TASK-03 signs what another library verifies", async () => {
    const signer = await newSigner();
    const [header = "", , signature = ""] = signer.sign(task).split(".");
    const [jwk] = signer.verifiers().keys;
    const payload = Buffer.from(canonicalJson(task)).toString("base64url");
    const verified = await flattenedVerify(
      { protected: header, payload, signature },
      await importJWK({ ...jwk }, "EdDSA"),
    );
    expect(verified.protectedHeader).toEqual({ alg: "EdDSA", kid: jwk?.kid });
  });

  it("TASK-03 stores no private key unencrypted", async () => {
    const signer = await newSigner();
    const [kid] = signer.verifiers().keys.map((key) => key.kid);
    expect(await keyring.get(`task-signing:${kid}`)).toBeInstanceOf(Buffer);
    const [stored] = await superuser`SELECT * FROM task_signing_keys`;
    expect(Object.keys(stored ?? {}), "nothing to replace by another key").toEqual([
      "kid",
      "created_at",
      "sign_from",
      "verify_until",
    ]);
  });

  it("TASK-03 makes one first key when replicas start together", async () => {
    const signers = await Promise.all([newSigner(), newSigner(), newSigner()]);
    const kids = new Set(signers.map((signer) => kidOf(signer.sign(task))));
    expect(kids.size).toBe(1);
  });
});

describe("rotation", () => {
  it("TASK-03 verifies with the next key at once, signs with it after two minutes, and drops the old one last", async () => {
    const signer = await newSigner();
    const first = kidOf(signer.sign(task));
    const next = await rotate(signer);
    const kids = () => signer.verifiers().keys.map((key) => key.kid);
    expect(kids()).toEqual([first, next]);
    expect(kidOf(signer.sign(task))).toBe(first);
    clock += 119_000;
    expect(kidOf(signer.sign(task))).toBe(first);
    clock += 2_000;
    expect(kidOf(signer.sign(task))).toBe(next);
    clock += 86_400_000;
    expect(kids()).toEqual([first, next]);
    clock += 2 * 86_400_000;
    expect(kids()).toEqual([next]);
  });

  it("TASK-03 sends a node its keys only when they differ from those it has", async () => {
    const signer = await newSigner();
    const first = kidOf(signer.sign(task));
    expect(await signer.verifiersBeyond([first])).toBeUndefined();
    expect((await signer.verifiersBeyond([]))?.keys.map((key) => key.kid)).toEqual([first]);
    const next = await rotate(signer);
    expect((await signer.verifiersBeyond([first]))?.keys.map((key) => key.kid)).toEqual([first, next]);
  });

  it("TASK-03 looks for a key that another replica made when a node names it", async () => {
    const [one, other] = [await newSigner(), await newSigner()];
    const next = await rotate(one);
    expect(other.verifiers().keys.map((key) => key.kid)).not.toContain(next);
    const first = kidOf(one.sign(task));
    expect(await other.verifiersBeyond([first, next])).toBeUndefined();
    expect(other.verifiers().keys.map((key) => key.kid)).toContain(next);
  });
});

describe("the chain of key sets", () => {
  const node = { version: 0, kids: [] };
  const kidsOf = ({ content }: SignedKeySet) => content.keys.map(({ kid }) => kid);
  const passTwoMinutes = () =>
    superuser`UPDATE task_signing_keys SET sign_from = sign_from - interval '2 minutes'`;

  it("TASK-03 gets a link with every key that comes or ends, each signed with a key of the one before", async () => {
    await superuser`DELETE FROM task_key_sets`;
    const signer = await newSigner();
    const first = kidOf(signer.sign(task));
    const next = await rotate(signer);
    await superuser`UPDATE task_signing_keys SET verify_until = now() WHERE kid = ${first}`;
    await signer.refresh();
    await signer.refresh();
    const sets = await signer.keySetsAfter(node);
    expect(sets.map(kidsOf)).toEqual([[first], [first, next], [next]]);
    for (const [index, set] of sets.entries()) {
      const before = sets[Math.max(0, index - 1)];
      expect(isSignedBy(keyringOf(before?.content.keys ?? []), set), `link ${index}`).toBe(true);
      expect(index === 0 || set.version > (before?.version ?? 0)).toBe(true);
    }
    expect(signer.keySet()).toEqual(sets.at(-1));
    expect(await signer.keySetsAfter({ version: sets[0]?.version ?? 0, kids: [] })).toEqual(sets.slice(1));
    expect(await signer.keySetsAfter({ version: signer.keySet().version, kids: [] })).toEqual([]);
    expect(await signer.keySetsAfter({ version: 0, kids: [first, next] }), "by its keys").toEqual(sets.slice(1));
  });

  it("TASK-03 is one for replicas that start and rotate together", async () => {
    await superuser`DELETE FROM task_key_sets`;
    const signers = await Promise.all([newSigner(), newSigner(), newSigner()]);
    await rotate(signers[0] as TaskSigner);
    await Promise.all(signers.map((one) => one.refresh()));
    const chains = await Promise.all(signers.map((one) => one.keySetsAfter(node)));
    expect(chains[0]).toHaveLength(2);
    expect(chains[1]).toEqual(chains[0]);
    expect(chains[2]).toEqual(chains[0]);
  });

  it("TASK-03 counts by the clock: after a restored backup, the next link is newer than what nodes have got since", async () => {
    const now = Math.floor(Date.now() / 1000);
    await superuser`DELETE FROM task_key_sets`;
    const signer = await newSigner();
    expect(signer.keySet().version).toBeGreaterThanOrEqual(now);
    const before = signer.keySet().version;
    await rotate(signer);
    expect(signer.keySet().version, "also within one second").toBeGreaterThan(before);
  });

  it("TASK-03 accepts no link of somebody who can only write to the database", async () => {
    const signer = await newSigner();
    const honest = signer.keySet();
    const { privateKey } = generateKeyPairSync("ed25519");
    const mallory = { kid: "mallory", privateKey };
    const { x = "" } = createPublicKey(privateKey).export({ format: "jwk" });
    const jwk = { kty: "OKP", crv: "Ed25519", alg: "EdDSA", use: "sig", kid: "mallory", x } as const;
    const write = ({ version, content, signatures }: SignedKeySet) => superuser`
      INSERT INTO task_key_sets (version, content, signatures)
      VALUES (${version}, ${JSON.stringify(content)}::json, ${JSON.stringify(signatures)}::json)`;
    const forged = (version: number) =>
      signStatement([mallory], { kind: "task_key_set" as const, version, content: { keys: [jwk] } });
    await write(forged(honest.version + 1_000));
    await signer.refresh();
    expect(signer.keySet()).toEqual(honest);
    expect((await newSigner()).keySet(), "after a start").toEqual(honest);
    // Not even as the first link, or with our keys and no signature of theirs.
    await superuser`DELETE FROM task_key_sets`;
    await write(forged(1));
    await write({ ...honest, version: honest.version + 2_000 });
    await passTwoMinutes();
    const again = await newSigner();
    expect(kidsOf(again.keySet())).toEqual(kidsOf(honest));
    expect(await again.keySetsAfter(node)).toHaveLength(1);
    await superuser`DELETE FROM task_key_sets`;
  });
});
