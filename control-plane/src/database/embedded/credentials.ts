// The passwords of the embedded server's login roles, in one file that only our own account can read. The server's
// account cannot: an attacker who takes it over can read tables, but gets no password.

import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { readFileIfPresent, writeFileDurably } from "@holdfast/kit/files";
import { UsageError } from "@holdfast/kit/settings";

export const roles = { superuser: "postgres", owner: "holdfast_owner" } as const;
export const databaseName = "holdfast";

export type Credentials = Record<keyof typeof roles, string>;

export function makeCredentials(): Credentials {
  return { superuser: makePassword(), owner: makePassword() };
}

export function readCredentials(directory: string): Credentials | undefined {
  const path = credentialsPath(directory);
  const text = readFileIfPresent(path);
  if (text === undefined) return undefined;
  const found = parse(text);
  if (found === undefined) {
    throw new UsageError(`${path} is damaged. Remove it: the next start sets new passwords and keeps all data.`);
  }
  return found;
}

export function writeCredentials(directory: string, credentials: Credentials): void {
  writeFileDurably(credentialsPath(directory), `${JSON.stringify(credentials, null, 2)}\n`, 0o600);
}

function credentialsPath(directory: string): string {
  return join(directory, "credentials.json");
}

function makePassword(): string {
  return randomBytes(24).toString("base64url");
}

function parse(text: string): Credentials | undefined {
  try {
    const value = JSON.parse(text) as Partial<Credentials>;
    const complete = Object.keys(roles).every((name) => typeof value[name as keyof Credentials] === "string");
    return complete ? (value as Credentials) : undefined;
  } catch {
    return undefined;
  }
}
