// The CAs that are trusted for https and wss: those of Node.js and the system's settings, and those of one file more.

import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureContext, getCACertificates, type SecureContext } from "node:tls";
import { UsageError } from "@holdfast/kit/settings";

const certificate = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Undefined without a file: the usual CAs are trusted. Throws a UsageError. */
export function trustWith(caFile: string | undefined): SecureContext | undefined {
  if (caFile === undefined) return undefined;
  let found: string[];
  try {
    found = readFileSync(caFile, "utf8").match(certificate) ?? [];
    for (const one of found) new X509Certificate(one);
  } catch (error) {
    throw new UsageError(
      `The CA file ${caFile} (HOLDFAST_EXECUTION_CA_FILE) cannot be read: ${(error as Error).message}.`,
    );
  }
  if (found.length === 0) {
    throw new UsageError(`The CA file ${caFile} (HOLDFAST_EXECUTION_CA_FILE) contains no certificate in PEM.`);
  }
  return createSecureContext({ ca: [...getCACertificates("default"), ...found] });
}
