// The key that signs evidence bundles. It has this one purpose: neither a node nor a host accepts what it signs, and rotating the
// keys of tasks does not end the validity of evidence. Its kid is its own digest, so knowing the kid is having pinned the key.

import { createPrivateKey, createPublicKey, generateKeyPairSync, hash, type KeyObject } from "node:crypto";
import { EvidenceKey, type Manifest } from "@holdfast/contracts/public/evidence-bundle";
import { signStatement } from "@holdfast/kit/signed-statement";
import type { Keyring } from "../../mechanisms/sealing/keyring.ts";

export type EvidenceSigner = {
  key: EvidenceKey;
  sign(statement: Omit<Manifest, "signatures" | "key">): Manifest;
};

const NAME = "evidence-signing";

export async function openEvidenceSigner(keyring: Keyring): Promise<EvidenceSigner> {
  const der = await keyring.getOrCreate(NAME, () =>
    generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "der" }),
  );
  return signerOf(createPrivateKey({ key: der, type: "pkcs8", format: "der" }));
}

/** Exported for tests. */
export function signerOf(privateKey: KeyObject): EvidenceSigner {
  const { x } = createPublicKey(privateKey).export({ format: "jwk" });
  const key = EvidenceKey.parse({ kid: kidOf(x ?? ""), kty: "OKP", crv: "Ed25519", x });
  return {
    key,
    sign: (statement) => ({ ...signStatement([{ kid: key.kid, privateKey }], statement), key }),
  };
}

/** The thumbprint of RFC 7638. */
export function kidOf(x: string): string {
  return hash("sha256", JSON.stringify({ crv: "Ed25519", kty: "OKP", x }), "base64url");
}
