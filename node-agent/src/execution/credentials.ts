// The credentials of an agent that runs steps: one file, readable by its owner only, replaced as a whole. A file of the system
// that this one follows is read where there is none of ours, and never written.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { isErrno, writeFileDurably } from "@holdfast/kit/files";
import { UsageError } from "@holdfast/kit/settings";
import { homeDirectory } from "../settings.ts";
import { CredentialsFile } from "./credentials.generated.ts";

export type Credentials = CredentialsFile;
export type Stored = { path: string; credentials: Credentials };

const OWNER_ONLY = 0o600;
const PAIR_AGAIN = "or pair this agent again: holdfast agent connect --pairing-token …";

/** Where credentials are written, and where they are looked for, in that order. */
export function credentialPaths(
  chosen: string | undefined,
  home = homeDirectory(),
): [own: string, ...others: string[]] {
  return chosen === undefined ? [join(home, ".holdfast/agent.json"), join(home, ".vespid/agent.json")] : [chosen];
}

/** The first file that exists. Undefined: there is none. Throws a UsageError about one that cannot be used. */
export function findCredentials(paths: readonly string[]): Stored | undefined {
  for (const path of paths) {
    const text = read(path);
    if (text !== undefined) return { path, credentials: parse(path, text) };
  }
  return undefined;
}

export function writeCredentials(path: string, credentials: Credentials): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeFileDurably(path, `${JSON.stringify(credentials, null, 2)}\n`, OWNER_ONLY);
  } catch (error) {
    throw new UsageError(`The credentials cannot be written to ${path}: ${(error as Error).message}.`);
  }
}

export function digestOfPairingToken(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

function read(path: string): string | undefined {
  try {
    const stat = statSync(path);
    if (stat.isDirectory())
      throw new UsageError(`${path} is a directory. Name the file with the agent's credentials.`);
    const { mode, uid } = stat;
    const own = process.getuid?.() ?? uid;
    if (uid !== own && own !== 0) {
      throw new UsageError(`The credentials in ${path} belong to the user ${uid}, and the agent runs as ${own}.`);
    }
    if ((mode & 0o077) !== 0) {
      const shown = (mode & 0o777).toString(8).padStart(3, "0");
      throw new UsageError(
        `The credentials in ${path} are accessible to other users (mode ${shown}). Run: chmod 600 ${path}`,
      );
    }
    return readFileSync(path, "utf8");
  } catch (error) {
    if (isErrno(error, "ENOENT")) return undefined;
    if (error instanceof UsageError) throw error;
    throw new UsageError(`The credentials in ${path} cannot be read: ${(error as Error).message}.`);
  }
}

function parse(path: string, text: string): Credentials {
  const unusable = (why: string) =>
    new UsageError(`${path} does not contain the credentials of an agent: ${why}. Restore it, ${PAIR_AGAIN}`);
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    throw unusable("it is not JSON");
  }
  const checked = CredentialsFile.safeParse(content);
  // The message names fields and never their values.
  if (!checked.success) throw unusable(checked.error.message);
  const { agentToken, organizationId } = checked.data;
  if (agentToken.split(".")[0]?.toLowerCase() !== organizationId) {
    throw unusable("agentToken does not begin with organizationId");
  }
  return checked.data;
}
