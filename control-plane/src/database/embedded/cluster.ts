// Makes the database directory. It appears under its final name only when it is complete and on
// disk: initdb, the roles and the database are made in a sibling directory, which is then renamed.
// So a crash at any moment leaves either nothing or everything, and the next start begins again.

import { spawn } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { syncDirectory } from "@holdfast/kit/files";
import type { Account } from "./account.ts";
import type { Binaries } from "./binaries.ts";
import { type Credentials, databaseName, roles } from "./credentials.ts";
import { dyingWithUs } from "./launch.ts";
import { killPostgresIn } from "./left-over.ts";

type ClusterOptions = {
  dataDirectory: string;
  binaries: Binaries;
  majorVersion: number;
  account: Account | undefined;
  credentials: Credentials;
};

export function clusterExists(dataDirectory: string): boolean {
  return existsSync(dataDirectory);
}

export async function createCluster(options: ClusterOptions): Promise<void> {
  const { dataDirectory, binaries, account } = options;
  await removeUnfinished(dataDirectory);
  const unfinished = mkdtempSync(unfinishedPrefix(dataDirectory));
  if (account) chownSync(unfinished, account.uid, account.gid);

  const run = (program: string, args: string[], input?: string) => runAs({ account, program, args, input });
  // Syncing once at the end instead of after each program saves 0.2 s of 1.2 s.
  await run(binaries.initdb, ["-D", unfinished, "--no-sync", ...initdbFlags(options.majorVersion)]);
  await run(binaries.postgres, singleUser(unfinished, { fsync: "off" }), createRoles(options.credentials));
  // Overwriting keeps the file's owner, which a new file of ours would not have.
  writeFileSync(`${unfinished}/pg_hba.conf`, passwordsOnly);
  await run(binaries.initdb, ["-D", unfinished, "--sync-only"]);
  renameSync(unfinished, dataDirectory);
  syncDirectory(dirname(dataDirectory));
}

function unfinishedPrefix(dataDirectory: string): string {
  return `${dataDirectory}.unfinished-`;
}

/** A killed initdb may leave a server of its own at work in there for a moment, which goes on making files. */
async function removeUnfinished(dataDirectory: string): Promise<void> {
  const parent = dirname(dataDirectory);
  const paths = readdirSync(parent).map((name) => join(parent, name));
  for (const path of paths.filter((one) => one.startsWith(unfinishedPrefix(dataDirectory)))) {
    for (let attempt = 0; existsSync(path) && attempt < 20; attempt += 1) {
      await killPostgresIn(path);
      rmSync(path, { recursive: true, force: true, maxRetries: 5 });
    }
  }
}

/** For a database whose credentials were lost: who may write its files may also set its passwords. */
export async function resetPasswords(options: ClusterOptions): Promise<void> {
  const { dataDirectory, binaries, account, credentials } = options;
  const sql = Object.entries(roles).map(
    ([name, role]) => `ALTER ROLE ${role} PASSWORD '${credentials[name as keyof Credentials]}';\n`,
  );
  await runAs({ account, program: binaries.postgres, args: singleUser(dataDirectory, {}), input: sql.join("") });
}

function initdbFlags(majorVersion: number): string[] {
  // The same order on every machine, whatever its C library; 17 brought a provider that knows UTF-8.
  const provider = majorVersion >= 17 ? ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"] : [];
  return [
    ...["--username", roles.superuser, "--encoding", "UTF8", "--locale=C", ...provider],
    // Nobody may connect by what initdb writes; our own rules replace it before the first start.
    ...["--auth=reject", "--no-instructions"],
    ...(majorVersion >= 18 ? [] : ["--data-checksums"]),
  ];
}

const passwordsOnly = `# Written by Holdfast. Every role proves its password; nothing listens on the network.
local all all scram-sha-256
`;

/** One statement per line, which is how the single-user mode reads. Passwords go by stdin: `ps` shows arguments. */
function createRoles(credentials: Credentials): string {
  return [
    `ALTER ROLE ${roles.superuser} PASSWORD '${credentials.superuser}';`,
    `CREATE ROLE ${roles.owner} LOGIN CREATEROLE PASSWORD '${credentials.owner}';`,
    `CREATE DATABASE ${databaseName} OWNER ${roles.owner};`,
    `REVOKE CONNECT, TEMPORARY ON DATABASE ${databaseName} FROM PUBLIC;`,
    "",
  ].join("\n");
}

function singleUser(dataDirectory: string, parameters: Record<string, string>): string[] {
  const all = {
    // Otherwise a failed statement is printed, the next one runs, and the exit code is 0.
    exit_on_error: "on",
    // Otherwise a failed statement is printed with the password in it.
    log_min_error_statement: "panic",
    log_checkpoints: "off",
    password_encryption: "scram-sha-256",
    ...parameters,
  };
  const flags = Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  return ["--single", "-D", dataDirectory, ...flags, "postgres"];
}

async function runAs(options: {
  account: Account | undefined;
  program: string;
  args: string[];
  input?: string;
}): Promise<void> {
  const { program, input } = options;
  const how = dyingWithUs({ ...options, signal: "KILL" });
  const child = spawn(how.command, how.args, { ...how.spawn, stdio: ["pipe", "ignore", "pipe"] });
  let complaint = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaint = (complaint + text).slice(-4000);
  });
  child.stdin.on("error", () => undefined);
  child.stdin.end(input ?? "");
  const outcome = await new Promise<string | number>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve(code ?? signal ?? "unknown"));
  });
  if (outcome !== 0) throw new Error(`${program} ended with ${outcome}:\n${complaint.trim()}`);
}
