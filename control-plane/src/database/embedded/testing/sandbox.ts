// What the tests of the embedded PostgreSQL share: a temporary directory that the server's account
// can reach, servers that are stopped at the end whatever happens, and questions to a server.

import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { chmod } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSql, type Sql } from "../../sql/sql.ts";
import { postgresProcessesIn } from "../left-over.ts";
import { type EmbeddedPostgres, type EmbeddedPostgresOptions, startEmbeddedPostgres } from "../start.ts";

export const isRoot = process.getuid?.() === 0;

export type Sandbox = {
  directory: string;
  dataDirectory: string;
  start(options?: Partial<EmbeddedPostgresOptions>): Promise<EmbeddedPostgres>;
  processes(): number[];
  cleanUp(): Promise<void>;
};

export async function openSandbox(options: { below?: string } = {}): Promise<Sandbox> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-test-")));
  await chmod(root, 0o711);
  const directory = join(root, options.below ?? "postgres");
  const dataDirectory = join(directory, "data");
  const started: EmbeddedPostgres[] = [];
  const processes = () => postgresProcessesIn(dataDirectory).map(({ pid }) => pid);
  return {
    directory,
    dataDirectory,
    processes,
    start: async (extra = {}) => {
      const server = await startEmbeddedPostgres({ directory, ...extra });
      started.push(server);
      return server;
    },
    cleanUp: async () => {
      await Promise.all(started.map((server) => server.stop({ hurry: true })));
      rmSync(root, { recursive: true, force: true });
    },
  };
}

export function connect(url: string): Sql {
  return openSql({ url, max: 1, application: "test", connectTimeoutSeconds: 60, parameters: {} });
}

/** The first column of the first row. */
export async function ask(url: string, query: string): Promise<unknown> {
  const sql = connect(url);
  try {
    const [row] = await sql.unsafe(query);
    return row && Object.values(row)[0];
  } finally {
    await sql.end({ timeout: 1 });
  }
}

export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 5));
}
