// Reads a recovery bundle, from a file or from a pasted line, and verifies it without a connection: by the roots that this
// host has, or by the SHA-256 of the root that the operator passed. What is not verified is not used.

import { X509Certificate } from "node:crypto";
import type { RecoveryBundle } from "@holdfast/contracts/node/recovery-bundle";
import { BUNDLE_LINE_PREFIX } from "@holdfast/contracts/secrets";
import { unpackLine } from "@holdfast/kit/packed-line";
import { isSignedBy } from "@holdfast/kit/signed-statement";
import { rootKeyring } from "../identity/accept-trust.ts";
import { digestOf } from "../identity/trust-file.ts";

/** Of the format. */
const VERSION = 1;

/** A bundle that is not applied, and why. The message never contains any part of its secret. */
export class BundleRefused extends Error {
  override name = "BundleRefused";
  readonly code: string;
  readonly nextStep: string;

  constructor(code: string, message: string, nextStep: string) {
    super(message);
    this.code = code;
    this.nextStep = nextStep;
  }
}

const createNew = "Create a new one on the server: `holdfast node bundle create <node>`.";

/** `rootSha256`: of a root that may have signed it, although this host does not have it. */
export type Unverified = { bundle: RecoveryBundle; rootSha256: string | undefined };

export function parseFile(text: string): Unverified {
  if (text.trim().startsWith(BUNDLE_LINE_PREFIX)) return parseLine(text);
  return { bundle: parse(text), rootSha256: undefined };
}

export function parseLine(line: string): Unverified {
  const found = unpackLine(BUNDLE_LINE_PREFIX, line.trim());
  if (!found) {
    throw new BundleRefused(
      "bundle_unreadable",
      "This is not a whole line of a recovery bundle: it is cut off, or something was added.",
      `Copy the line again, from ${BUNDLE_LINE_PREFIX} to its end. Or copy the file to this host.`,
    );
  }
  return { bundle: parse(found.text), rootSha256: Buffer.from(found.head, "base64url").toString("hex") };
}

function parse(text: string): RecoveryBundle {
  let found: Partial<RecoveryBundle> | undefined;
  try {
    found = JSON.parse(text) as Partial<RecoveryBundle> | undefined;
  } catch {
    found = undefined;
  }
  if (found?.kind !== "recovery_bundle" || !Array.isArray(found.signatures)) {
    throw new BundleRefused("bundle_unreadable", "This is not a recovery bundle, or not a whole one.", createNew);
  }
  if (found.version !== VERSION) {
    throw new BundleRefused(
      "bundle_version_unsupported",
      `This recovery bundle has version ${String(found.version)}; this agent knows version ${VERSION}.`,
      "Upgrade the agent: `holdfast node release` on the server prints the command.",
    );
  }
  return found as RecoveryBundle;
}

/**
 * The root that signed it: one that this host has, or the one with this digest. A bundle that carries its own root proves
 * nothing by that alone.
 */
export function verify(
  bundle: RecoveryBundle,
  { known, rootSha256 }: { known: readonly string[]; rootSha256: string | undefined },
): void {
  const carried = bundle.content?.trust_bundle?.roots;
  const named = (Array.isArray(carried) ? carried : []).filter(
    (root) => rootSha256 !== undefined && digestOf(root) === rootSha256.toLowerCase(),
  );
  const trusted = [...known, ...named].filter(isCertificate);
  if (trusted.length > 0 && isSignedBy(rootKeyring(trusted), bundle)) return;
  if (trusted.length > 0 && isOfTrusted(bundle, trusted)) {
    throw new BundleRefused(
      "bundle_tampered",
      "The signature of this recovery bundle is wrong: it was changed after it was created. Nothing was changed here.",
      `${createNew} Find out who had the file.`,
    );
  }
  throw new BundleRefused(
    "bundle_untrusted",
    rootSha256 === undefined
      ? "This recovery bundle is not signed by a root that this host trusts. Nothing was changed here."
      : "This recovery bundle is not signed by the root with that SHA-256. Nothing was changed here.",
    "Compare with what `holdfast node bundle create` printed on the server, and pass it: --root-sha256 <hex>",
  );
}

/** It names a root that is trusted, but its signature does not fit. */
function isOfTrusted({ signatures }: RecoveryBundle, trusted: readonly string[]): boolean {
  const kids = trusted.map(digestOf);
  return signatures.some((one) => {
    try {
      const { kid } = JSON.parse(Buffer.from(one.split(".")[0] ?? "", "base64url").toString()) as { kid?: string };
      return kids.includes(kid);
    } catch {
      return false;
    }
  });
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).ca;
  } catch {
    return false;
  }
}
