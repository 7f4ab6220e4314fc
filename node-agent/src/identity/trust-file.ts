// trust.pem: the root certificates that the server's must chain to, as of the join or the last accepted
// signed bundle. Without it no server can be trusted.

import { createHash, X509Certificate } from "node:crypto";
import { readFileIfPresent, writeFileDurably } from "@holdfast/kit/files";
import { explainWriteError, HostProblem, type StateFiles } from "./state-directory.ts";

const certificate = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n?/g;

export function writeTrust(files: StateFiles, roots: readonly string[]): void {
  try {
    writeFileDurably(files.trust, roots.map((root) => `${root.trim()}\n`).join(""), 0o600);
  } catch (error) {
    throw explainWriteError(error, files.directory);
  }
}

/** `expected`: SHA-256 of the roots by the node's profile, hex; at least one of them must be there. */
export function readTrust(files: StateFiles, expected: readonly string[]): string[] {
  let roots: string[];
  let known: string[];
  try {
    roots = readFileIfPresent(files.trust)?.match(certificate) ?? [];
    known = roots.map(sha256OfRoot);
  } catch (error) {
    throw invalid(`${files.trust} cannot be read: ${(error as Error).message}.`);
  }
  if (roots.length === 0) throw invalid(`${files.trust} is missing or holds no certificate.`);
  if (expected.length > 0 && !known.some((one) => expected.includes(one))) {
    throw invalid(`${files.trust} holds other roots than this node was enrolled with.`);
  }
  return roots;
}

export function sha256OfRoot(pem: string): string {
  return createHash("sha256").update(new X509Certificate(pem).raw).digest("hex");
}

/** Undefined if it is not a certificate. */
export function digestOf(pem: string): string | undefined {
  try {
    return sha256OfRoot(pem);
  } catch {
    return undefined;
  }
}

function invalid(what: string): HostProblem {
  return new HostProblem(
    "trust_bundle_invalid",
    `${what} Restore it, or join again with a token made for this node: \`holdfast node token create --node <id>\`.`,
  );
}
