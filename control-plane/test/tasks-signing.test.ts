// Signatures of tasks: made here, checked by anything that knows JWS; keys that follow each other
// without a task that nobody can verify.

import { createPublicKey, type KeyObject } from "node:crypto";
import type { SignedTask } from "@holdfast/contracts/signed-task";
import { canonicalJson } from "@holdfast/kit/canonical-json";
import { verifyDetached } from "@holdfast/kit/detached-jws";
import { uuidv7 } from "@holdfast/kit/uuid";
import { createLog } from "@holdfast/service/log";
import { flattenedVerify, importJWK } from "jose";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Sql } from "../src/database/connect.ts";
import { type Keyring, openKeyring } from "../src/sealing/keyring.ts";
import { openTaskSigner, type TaskSigner } from "../src/tasks/signing.ts";
import { atEnd } from "./support/at-end.ts";
import { createTestDatabase, openRoles } from "./support/database.ts";

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
  atEnd(() => signer.stop());
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

  it("TASK-03 keeps no private key in the open", async () => {
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

  it("TASK-03 tells a node its keys only when they are not these", async () => {
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
