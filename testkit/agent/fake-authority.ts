// A CA for tests: the product's own forms of certificates, with lives that the test chooses.

import { createHash, createPublicKey, KeyObject, randomUUID, type webcrypto, X509Certificate } from "node:crypto";
import { type Signed, type Statement, signStatement } from "@holdfast/kit/signed-statement";
import {
  makeIssuing,
  makeKeyPair,
  makeNodeCertificate,
  makeRoot,
  makeServerCertificate,
  makeServiceCertificate,
  type Signer,
  type Validity,
} from "../../control-plane/src/identity/certificates.ts";
import { x509 } from "../../control-plane/src/identity/x509.ts";

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
  const root = await newSigner((keys) => makeRoot(keys, new Date()));
  const issuing = await newSigner((keys) => makeIssuing(root, keys, new Date()));
  const rootDer = Buffer.from(root.certificate.rawData);
  const behind = `${issuing.certificate.toString("pem")}\n`;
  const issuer = new X509Certificate(Buffer.from(issuing.certificate.rawData));
  const rootSha256 = createHash("sha256").update(rootDer).digest("hex");
  return {
    rootPem: `${root.certificate.toString("pem")}\n`,
    rootDigest: createHash("sha256").update(rootDer).digest("base64url"),
    rootSha256,
    async server(names = ["localhost", "127.0.0.1", "nodes.holdfast.test"], validity = {}) {
      const keys = await makeKeyPair();
      const certificate = await makeServerCertificate(issuing, {
        names,
        publicKey: keys.publicKey,
        validity: validityWith(validity),
      });
      return { cert: `${certificate.toString("pem")}\n${behind}`, key: await pemOf(keys.privateKey) };
    },
    async gateway(names) {
      const keys = await makeKeyPair();
      const certificate = await makeServiceCertificate(issuing, {
        service: { name: "gateway", instanceId: randomUUID() },
        names,
        publicKey: await x509.PublicKey.create(keys.publicKey),
        validity: validityWith({}),
      });
      return { cert: `${certificate.toString("pem")}\n${behind}`, key: await pemOf(keys.privateKey) };
    },
    async certify(csr, nodeId, validity = {}) {
      const { publicKey } = new x509.Pkcs10CertificateRequest(csr);
      const leaf = await makeNodeCertificate(issuing, { id: nodeId, publicKey, validity: validityWith(validity) });
      return `${leaf.toString("pem")}\n${behind}`;
    },
    hasIssued: (leaf) => leaf.checkIssued(issuer) && leaf.verify(issuer.publicKey),
    sign: (statement) =>
      signStatement([{ kid: rootSha256, privateKey: KeyObject.from(root.privateKey) }], statement),
  };
}

async function pemOf(key: webcrypto.CryptoKey): Promise<string> {
  return `${x509.PemConverter.encode(await crypto.subtle.exportKey("pkcs8", key), "PRIVATE KEY")}\n`;
}

async function newSigner(
  make: (keys: Awaited<ReturnType<typeof makeKeyPair>>) => Promise<x509.X509Certificate>,
): Promise<Signer> {
  const keys = await makeKeyPair();
  return { certificate: await make(keys), privateKey: keys.privateKey };
}

function validityWith({ notBefore, notAfter }: Partial<Validity>): Validity {
  return {
    notBefore: notBefore ?? new Date(Date.now() - HOUR_MS / 12),
    notAfter: notAfter ?? new Date(Date.now() + 24 * HOUR_MS),
  };
}

/** Of a request or a certificate: to compare whose key it is. */
export function keyDigest(pem: string): string {
  const key = pem.includes("REQUEST")
    ? Buffer.from(new x509.Pkcs10CertificateRequest(pem).publicKey.rawData)
    : createPublicKey(pem).export({ type: "spki", format: "der" });
  return createHash("sha256").update(key).digest("hex");
}
