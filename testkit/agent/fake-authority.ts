// A CA for tests: the product's own forms of certificates, with lives that the test chooses.

import { createHash, createPublicKey, randomUUID, type X509Certificate } from "node:crypto";
import { privateKeyPem } from "@holdfast/kit/certificate-request";
import { pem } from "@holdfast/kit/der";
import { type Signed, type Statement, signStatement } from "@holdfast/kit/signed-statement";
import type { Validity } from "../../control-plane/src/identity/certificate-der.ts";
import {
  type KeyPair,
  type Made,
  makeIssuing,
  makeKeyPair,
  makeNodeCertificate,
  makeRoot,
  makeServerCertificate,
  makeServiceCertificate,
  type Signer,
  signerOf,
} from "../../control-plane/src/identity/certificates.ts";
import { readKeyRequest } from "../../control-plane/src/identity/requests.ts";

const HOUR_MS = 3_600_000;

export type FakeAuthority = {
  rootPem: string;
  /** What stands behind the dot of a token. */
  rootDigest: string;
  rootSha256: string;
  server(names?: string[], validity?: Partial<Validity>): Promise<{ cert: string; key: string }>;
  /** As a gateway gets it, which may ask for any names. */
  gateway(names: string[]): Promise<{ cert: string; key: string }>;
  /** For the key of a request; the chain, leaf first. */
  certify(csr: string, nodeId: string, validity?: Partial<Validity>): Promise<string>;
  hasIssued(leaf: X509Certificate): boolean;
  /** With the root's key. */
  sign<S extends Statement>(statement: S): Signed<S>;
};

export async function makeAuthority(): Promise<FakeAuthority> {
  const root = newSigner((keys) => makeRoot(keys, new Date()));
  const issuing = newSigner((keys) => makeIssuing(root, keys, new Date()));
  const rootDer = root.certificate.raw;
  const chainOf = ({ der }: Made) => `${pem("CERTIFICATE", der)}${issuing.certificate}`;
  const rootSha256 = createHash("sha256").update(rootDer).digest("hex");
  return {
    rootPem: root.certificate.toString(),
    rootDigest: createHash("sha256").update(rootDer).digest("base64url"),
    rootSha256,
    async server(names = ["localhost", "127.0.0.1", "nodes.holdfast.test"], validity = {}) {
      const { publicKey, privateKey } = makeKeyPair();
      const made = makeServerCertificate(issuing, { names, publicKey, validity: validityWith(validity) });
      return { cert: chainOf(made), key: privateKeyPem(privateKey) };
    },
    async gateway(names) {
      const { publicKey, privateKey } = makeKeyPair();
      const service = { name: "gateway", instanceId: randomUUID() } as const;
      const made = makeServiceCertificate(issuing, { service, names, publicKey, validity: validityWith({}) });
      return { cert: chainOf(made), key: privateKeyPem(privateKey) };
    },
    async certify(csr, nodeId, validity = {}) {
      const { publicKey } = readKeyRequest(csr);
      return chainOf(makeNodeCertificate(issuing, { id: nodeId, publicKey, validity: validityWith(validity) }));
    },
    hasIssued: (leaf) => leaf.checkIssued(issuing.certificate) && leaf.verify(issuing.certificate.publicKey),
    sign: (statement) => signStatement([{ kid: rootSha256, privateKey: root.privateKey }], statement),
  };
}

function newSigner(make: (keys: KeyPair) => Made): Signer {
  const keys = makeKeyPair();
  return signerOf(make(keys).der, keys.privateKey);
}

function validityWith({ notBefore, notAfter }: Partial<Validity>): Validity {
  return {
    notBefore: notBefore ?? new Date(Date.now() - HOUR_MS / 12),
    notAfter: notAfter ?? new Date(Date.now() + 24 * HOUR_MS),
  };
}

/** Of a request or a certificate: to compare whose key it is. */
export function keyDigest(text: string): string {
  const key = text.includes("REQUEST")
    ? readKeyRequest(text).publicKey
    : createPublicKey(text).export({ type: "spki", format: "der" });
  return createHash("sha256").update(key).digest("hex");
}
