// The embedded PostgreSQL: made on first use, started, and stopped with whoever started it. One
// directory holds all of it:
//
//   credentials.json   passwords of the superuser and the owner, readable by us alone
//   data/              the database, owned by the account that runs the server
//   run/               its socket
//   bin-<version>/     PostgreSQL's programs, only where node_modules cannot be used
//   server.log

import { chmodSync, mkdirSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { UsageError } from "@holdfast/kit/settings";
import { type Account, chooseAccount, directoryThatBlocks } from "./account.ts";
import { type Binaries, prepareBinaries, versionOf } from "./binaries.ts";
import { clusterExists, createCluster, resetPasswords } from "./cluster.ts";
import {
  type Credentials,
  databaseName,
  makeCredentials,
  readCredentials,
  roles,
  writeCredentials,
} from "./credentials.ts";
import { stopLeftOver } from "./left-over.ts";
import { type ServerParameters, serverArguments } from "./parameters.ts";
import { type ServerExit, startServer, stopServer } from "./server.ts";
import { prepareSocketDirectory } from "./socket-directory.ts";
import { socketUrl } from "./socket-url.ts";

export type EmbeddedPostgresOptions = {
  directory: string;
  /** PostgreSQL's programs, when not the installed ones: a directory with bin/, lib/ and share/. */
  binaries?: string;
  /** Who runs the server when we are root. */
  runAs?: string;
  /** Beyond our own, for tests: { fsync: "off" }. */
  parameters?: ServerParameters;
  /** Never makes a database: for one that ran a moment ago, whose directory may have lost its mount. */
  mustExist?: boolean;
  /** Aborts a start in progress. */
  signal?: AbortSignal;
  onProgress?(text: string): void;
};

export type EmbeddedPostgres = {
  superuserUrl: string;
  ownerUrl: string;
  version: string;
  pid: number;
  exited: Promise<ServerExit>;
  /** `hurry` leaves the checkpoint to the next start; nothing acknowledged is lost either way. */
  stop(options?: { hurry?: boolean }): Promise<void>;
};

export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { parameters = {}, signal, onProgress = () => undefined } = options;
  if (options.mustExist && !clusterExists(join(options.directory, "data"))) {
    throw new UsageError(
      `The database in ${options.directory} has disappeared, and none is made in its place. ` +
        "Restore the directory (is its disk mounted?). Holdfast checks for it again every few seconds.",
    );
  }
  // Parents are made with the usual mode: closed ones would keep the server's account out.
  mkdirSync(dirname(options.directory), { recursive: true });
  mkdirSync(options.directory, { recursive: true, mode: 0o700 });
  const directory = realpathSync(options.directory);
  const dataDirectory = join(directory, "data");
  const account = chooseAccount({ runAs: options.runAs, dataDirectory });
  openTheWay(directory, account);

  const binaries = prepareBinaries({ native: options.binaries, directory, account, onProgress });
  const version = await versionOf(binaries);
  await stopLeftOver(dataDirectory, onProgress);
  const credentials = await ensureCluster({ directory, dataDirectory, binaries, version, account, onProgress });
  signal?.throwIfAborted();

  const socket = prepareSocketDirectory(directory, account);
  const server = await startServer({
    binaries,
    account,
    args: serverArguments({ dataDirectory, socketDirectory: socket.path, extra: parameters }),
    dataDirectory,
    logFile: join(directory, "server.log"),
    signal,
    onProgress,
  });
  const urlOf = (role: keyof typeof roles, database: string) =>
    socketUrl({ user: roles[role], password: credentials[role], directory: socket.path, database });
  return {
    superuserUrl: urlOf("superuser", "postgres"),
    ownerUrl: urlOf("owner", databaseName),
    version,
    pid: server.pid,
    exited: server.exited,
    stop: async ({ hurry = false } = {}) => {
      await stopServer(server, hurry);
      socket.remove();
    },
  };
}

/** The server's account must be able to walk to its data through directories that are ours. */
function openTheWay(directory: string, account: Account | undefined): void {
  chmodSync(directory, account ? 0o711 : 0o700);
  const blocking = account && directoryThatBlocks(account, directory);
  if (account && blocking !== undefined) {
    throw new UsageError(
      `PostgreSQL runs as ${account.name}, who cannot reach ${directory}: ${blocking} is closed to others. ` +
        `Set HOLDFAST_DATA_DIR to a directory that is open on the way down, such as /var/lib/holdfast, ` +
        `or open it: chmod o+x ${blocking}`,
    );
  }
}

async function ensureCluster(options: {
  directory: string;
  dataDirectory: string;
  binaries: Binaries;
  version: string;
  account: Account | undefined;
  onProgress(text: string): void;
}): Promise<Credentials> {
  const { directory, dataDirectory, version, onProgress } = options;
  const majorVersion = Number.parseInt(version, 10);
  const known = readCredentials(directory);
  const credentials = known ?? makeCredentials();
  const cluster = { ...options, majorVersion, credentials };
  if (!clusterExists(dataDirectory)) {
    // Written first: a directory that appears is then always one whose passwords we know.
    if (known === undefined) writeCredentials(directory, credentials);
    onProgress("creating the database");
    await createCluster(cluster);
    return credentials;
  }
  const made = readFileSync(join(dataDirectory, "PG_VERSION"), "utf8").trim();
  if (Number(made) !== majorVersion) {
    throw new UsageError(
      `${dataDirectory} was created by PostgreSQL ${made}; this is PostgreSQL ${version}. ` +
        "Dump it with the old version and restore it with the new one, or use another HOLDFAST_DATA_DIR.",
    );
  }
  if (known === undefined) {
    onProgress("the passwords of the database are lost, setting new ones");
    await resetPasswords(cluster);
    // Written last: a crash before this line finds them missing again, and sets them again.
    writeCredentials(directory, credentials);
  }
  return credentials;
}
