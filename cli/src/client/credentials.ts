// The credentials that `holdfast login` stores, in a file that only its user can read.

import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { readFileIfPresent, removeIfPresent, writeFileDurably } from "@holdfast/kit/files";
import { type Environment, UsageError } from "@holdfast/kit/settings";
import { homeDirectory } from "../home.ts";

export type Credentials = {
  api_url: string;
  token: string;
  token_id: string;
  org_id: string;
  /** The TLS certificate of a server on this machine. */
  certificate_file?: string;
};

/** Undefined for a user without a home. */
function credentialsPath(env: Environment): string | undefined {
  const home = homeDirectory();
  const directory = env["XDG_CONFIG_HOME"] || (home && join(home, ".config"));
  return directory && join(directory, "holdfast/credentials.json");
}

export function loadCredentials(env: Environment): Credentials | undefined {
  const path = credentialsPath(env);
  const text = path && readFileIfPresent(path);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as Credentials;
  } catch {
    throw new UsageError(`${path} is not valid JSON. Sign in again with \`holdfast login\`, or remove the file.`);
  }
}

export function saveCredentials(env: Environment, credentials: Credentials): void {
  const path = credentialsPath(env);
  if (path === undefined)
    throw new UsageError("There is no home directory to store the credentials in. Set HOME or XDG_CONFIG_HOME.");
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileDurably(path, `${JSON.stringify(credentials, null, 2)}\n`, 0o600);
}

export function forgetCredentials(env: Environment): void {
  const path = credentialsPath(env);
  if (path) removeIfPresent(path);
}
