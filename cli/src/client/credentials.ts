// The sign-in that `holdfast login` keeps, in a file that only its user can read.

import { mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { readFileIfPresent, removeIfPresent, writeFileDurably } from "@holdfast/kit/files";
import { type Environment, UsageError } from "@holdfast/kit/settings";

export type Credentials = {
  api_url: string;
  token: string;
  token_id: string;
  org_id: string;
  /** Of a server on this machine that speaks TLS. */
  certificate_file?: string;
};

function credentialsPath(env: Environment): string {
  return join(env["XDG_CONFIG_HOME"] || join(homedir(), ".config"), "holdfast/credentials.json");
}

export function loadCredentials(env: Environment): Credentials | undefined {
  const path = credentialsPath(env);
  const text = readFileIfPresent(path);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as Credentials;
  } catch {
    throw new UsageError(`${path} is damaged. Sign in again with \`holdfast login\`, or remove it.`);
  }
}

export function saveCredentials(env: Environment, credentials: Credentials): void {
  const path = credentialsPath(env);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileDurably(path, `${JSON.stringify(credentials, null, 2)}\n`, 0o600);
}

export function forgetCredentials(env: Environment): void {
  removeIfPresent(credentialsPath(env));
}
