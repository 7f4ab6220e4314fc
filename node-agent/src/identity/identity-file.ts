// identity.pem: the node's private key and certificate chain in one file, replaced as a whole, so
// that no crash can leave a key with another key's certificate. Reading it verifies
// everything that does not need the server.

import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileIfPresent, writeFileDurably } from "@holdfast/kit/files";
import { explainWriteError, HostProblem, type StateFiles } from "./state-directory.ts";

export type CertificateFacts = {
  /** Lower-case hex. */
  serial: string;
  notBefore: number;
  notAfter: number;
};

export type Identity = {
  nodeId: string;
  keyPem: string;
  /** Leaf first, then the issuing CA. */
  chainPem: string;
  certificate: CertificateFacts;
};

const block = (label: string) => new RegExp(`-----BEGIN ${label}-----[^-]+-----END ${label}-----\\n?`, "g");
const rejoin = "join again with a token made for this node: `holdfast node token create --node <id>`";

export function writeIdentity(files: StateFiles, identity: { keyPem: string; chainPem: string }): void {
  try {
    writeFileDurably(files.identity, identity.keyPem + identity.chainPem, 0o600);
  } catch (error) {
    throw explainWriteError(error, files.directory);
  }
}

/** An expired certificate is read like any other: the agent still presents it, and reports that it expired. */
export function readIdentity(files: StateFiles): Identity {
  let text: string | undefined;
  try {
    text = readFileIfPresent(files.identity);
  } catch (error) {
    throw missing(`${files.identity} cannot be read: ${(error as Error).message}. Mend that, or ${rejoin}.`);
  }
  if (text === undefined) throw missing(`${files.identity} is not there. Restore it, or ${rejoin}.`);
  return parseIdentity(text, files.identity);
}

export function parseIdentity(text: string, path: string): Identity {
  const keyPem = text.match(block("PRIVATE KEY"))?.[0];
  const chain = text.match(block("CERTIFICATE")) ?? [];
  if (!keyPem || !chain[0]) {
    throw missing(`${path} does not hold a private key and a certificate. Restore it, or ${rejoin}.`);
  }
  let leaf: X509Certificate;
  let belongs: boolean;
  try {
    leaf = new X509Certificate(chain[0]);
    belongs = leaf.checkPrivateKey(createPrivateKey(keyPem));
  } catch {
    throw missing(`The key or the certificate in ${path} is damaged. Restore the file, or ${rejoin}.`);
  }
  if (!belongs) {
    throw missing(
      `The key in ${path} does not belong to the certificate beside it. Restore the file, or ${rejoin}.`,
    );
  }
  const nodeId = nodeIdOf(leaf);
  if (nodeId === undefined)
    throw missing(`The certificate in ${path} is not one of a node. To fix it, ${rejoin}.`);
  return { nodeId, keyPem, chainPem: chain.join(""), certificate: certificateFacts(leaf) };
}

function certificateFacts(leaf: X509Certificate): CertificateFacts {
  return {
    serial: leaf.serialNumber.toLowerCase(),
    notBefore: leaf.validFromDate.getTime(),
    notAfter: leaf.validToDate.getTime(),
  };
}

function nodeIdOf(leaf: X509Certificate): string | undefined {
  return /(?:^|, )URI:holdfast:\/\/node\/([0-9a-f-]{36})(?:,|$)/.exec(leaf.subjectAltName ?? "")?.[1];
}

function missing(message: string): HostProblem {
  return new HostProblem("identity_key_missing", message);
}
