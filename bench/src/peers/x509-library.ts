// A node's certificate for a request, made with an X.509 library: the same checks, fields and extensions as ours. It runs
// in the bench's own process, where it takes turns with ours.

import "reflect-metadata";
import { webcrypto } from "node:crypto";
import * as x509 from "@peculiar/x509";

x509.cryptoProvider.set(webcrypto);

const P256 = { name: "ECDSA", namedCurve: "P-256" };
const SIGNED = { name: "ECDSA", hash: "SHA-256" };
const CLIENT_AUTH = "1.3.6.1.5.5.7.3.2";
const DAY_MS = 86_400_000;

/** From a request to the PEM of its certificate. */
export type Issue = (csr: string, nodeId: string) => Promise<string>;

export async function issueByLibrary(): Promise<Issue> {
  const keys = await webcrypto.subtle.generateKey(P256, true, ["sign", "verify"]);
  const ca = await x509.X509CertificateGenerator.createSelfSigned({
    name: "CN=CA",
    keys,
    signingAlgorithm: SIGNED,
  });
  return async (csr, nodeId) => {
    const { publicKey, ...request } = await accepted(csr);
    const extensions = [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([CLIENT_AUTH]),
      new x509.SubjectAlternativeNameExtension([{ type: "url", value: `holdfast://node/${nodeId}` }]),
      await x509.SubjectKeyIdentifierExtension.create(publicKey),
      await x509.AuthorityKeyIdentifierExtension.create(ca.publicKey),
    ];
    const leaf = await x509.X509CertificateGenerator.create({
      ...{ subject: `CN=${nodeId}`, issuer: ca.subject, publicKey, extensions, ...request },
      signingKey: keys.privateKey,
      signingAlgorithm: SIGNED,
    });
    return leaf.toString("pem");
  };
}

async function accepted(csr: string) {
  const request = new x509.Pkcs10CertificateRequest(csr);
  if (!(await request.verify())) throw new Error("a request that is not signed with its own key");
  return { publicKey: request.publicKey, notBefore: new Date(), notAfter: new Date(Date.now() + DAY_MS) };
}
