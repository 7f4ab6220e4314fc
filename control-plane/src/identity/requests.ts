// Reads certificate requests (PKCS#10) of nodes. Only the key is taken from a request: the server decides
// whom the certificate is for, and how long it is valid.

import { createPublicKey, hash } from "node:crypto";
import { ApiError } from "@holdfast/contracts/errors";
import { x509 } from "./x509.ts";

export type KeyRequest = { publicKey: x509.PublicKey; keySha256: Buffer };

/** Throws `csr_invalid` unless it is a request for a P-256 key, signed with that key. */
export async function readKeyRequest(pem: string): Promise<KeyRequest> {
  const request = parse(pem);
  // Read by OpenSSL as well: the point must lie on the curve.
  const spki = Buffer.from(request.publicKey.rawData);
  if (!isP256(spki)) throw refused("the key is not a P-256 key");
  if (!(await isSelfSigned(request))) throw refused("the request is not signed with its own key");
  return { publicKey: request.publicKey, keySha256: hash("sha256", spki, "buffer") };
}

function parse(pem: string): x509.Pkcs10CertificateRequest {
  if (!/^\s*-----BEGIN CERTIFICATE REQUEST-----[\s\w+/=]+-----END CERTIFICATE REQUEST-----\s*$/.test(pem)) {
    throw refused("not a PEM block of the type CERTIFICATE REQUEST");
  }
  try {
    return new x509.Pkcs10CertificateRequest(pem);
  } catch {
    throw refused("not a PKCS#10 request");
  }
}

function isP256(spki: Buffer): boolean {
  try {
    const key = createPublicKey({ key: spki, format: "der", type: "spki" });
    return key.asymmetricKeyType === "ec" && key.asymmetricKeyDetails?.namedCurve === "prime256v1";
  } catch {
    return false;
  }
}

async function isSelfSigned(request: x509.Pkcs10CertificateRequest): Promise<boolean> {
  try {
    return await request.verify();
  } catch {
    return false;
  }
}

function refused(problem: string): ApiError {
  return new ApiError("csr_invalid", { details: { fields: [{ field: "body.csr", problem }] } });
}
