// The secrets that `holdfast up` makes. On first use, and kept: the key that seals everything secret in
// the database, the token by which the commands of this machine act without signing in, and the one by which its workers
// dispatch steps. At each start, and kept nowhere: the one by which api and gateway know each other.

import { createHash, randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { secretPrefix } from "@holdfast/contracts/secrets";
import { readFileIfPresent, writeFileDurably } from "@holdfast/kit/files";
import { kinds, UsageError } from "@holdfast/kit/settings";
import type { DataDirectory } from "./data-directory.ts";

/** In base64, as the api's setting takes it. */
export function ensureKek(data: DataDirectory): string {
  const kept = readFileIfPresent(data.kek)?.trim();
  if (kept !== undefined) {
    if (kinds.key256.parse(kept) === undefined) {
      throw new UsageError(
        `${data.kek} is invalid; expected ${kinds.key256.allowed}. Restore it from a backup; ` +
          "without it, everything sealed in the database is lost.",
      );
    }
    return kept;
  }
  if (existsSync(`${data.postgres}/data`)) {
    throw new UsageError(
      `The key file ${data.kek} is missing, but its database exists. A new key could not decrypt what is ` +
        "sealed in it: certificates and stored secrets would be lost. Restore the file from a backup, or set the key " +
        "in HOLDFAST_KEK_BASE64. To start with an empty installation, set another HOLDFAST_DATA_DIR.",
    );
  }
  const made = randomBytes(32).toString("base64");
  writeFileDurably(data.kek, `${made}\n`, 0o600);
  return made;
}

export function ensureOperatorToken(data: DataDirectory): string {
  return ensureToken(data.operatorToken, secretPrefix.localOperator);
}

export function ensureDispatchToken(data: DataDirectory): string {
  return ensureToken(data.dispatchToken, secretPrefix.dispatch);
}

function ensureToken(file: string, prefix: string): string {
  const kept = readFileIfPresent(file)?.trim();
  if (kept?.startsWith(prefix)) return kept;
  const made = `${prefix}${randomBytes(32).toString("base64url")}`;
  writeFileDurably(file, `${made}\n`, 0o600);
  return made;
}

export function makeServiceToken(): string {
  return `${secretPrefix.service}${randomBytes(32).toString("base64url")}`;
}

/** The api compares digests, so that it never holds the token itself. */
export function digestOf(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}
