// The sign-in that `holdfast login` keeps, in a file that only its user can read.

import { mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { readFileIfPresent, removeIfPresent, writeFileDurably } from "@holdfast/kit/files";
import type { Environment } from "@holdfast/kit/settings";

export type Credentials = { api_url: string; token: string; token_id: string; org_id: string };

function credentialsPath(env: Environment): string {
  return join(env["XDG_CONFIG_HOME"] || join(homedir(), ".config"), "holdfast/credentials.json");
}

export function loadCredentials(env: Environment): Credentials | undefined {
  const text = readFileIfPresent(credentialsPath(env));
  return text === undefined ? undefined : (JSON.parse(text) as Credentials);
}

export function saveCredentials(env: Environment, credentials: Credentials): void {
  const path = credentialsPath(env);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileDurably(path, `${JSON.stringify(credentials, null, 2)}\n`, 0o600);
}

export function forgetCredentials(env: Environment): void {
  removeIfPresent(credentialsPath(env));
}
