// Starts one PostgreSQL for the whole test run, with the product's own launcher, and migrates the
// template that every test file's database is cloned from. Durability is off: these databases
// live for minutes. What must survive a crash is tested elsewhere with durability on.

import { chmodSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { startEmbeddedPostgres } from "../../control-plane/src/database/embedded/start.ts";
import { setUpDatabase } from "../../control-plane/src/database/logins.ts";
import type { Logins } from "../../control-plane/src/database/settings.ts";

declare module "vitest" {
  export interface ProvidedContext {
    postgres: Logins & { superuserUrl: string; ownerUrl: string };
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  // Named after the run, by which scripts/test.mjs finds what it leaves behind.
  const directory = join(tmpdir(), process.env["HOLDFAST_TEST_RUN"] ?? `holdfast-tests-${process.pid}`);
  mkdirSync(directory);
  chmodSync(directory, 0o711);
  // Whatever tests make for a while, they make below this directory.
  const scratch = join(directory, "scratch");
  mkdirSync(scratch, { mode: 0o711 });
  process.env["TMPDIR"] = scratch;
  const server = await startEmbeddedPostgres({
    directory: join(directory, "postgres"),
    parameters: { fsync: "off", full_page_writes: "off", max_connections: "200" },
  });
  const { superuserUrl, ownerUrl } = server;
  const { logins } = await setUpDatabase({ ownerUrl });
  project.provide("postgres", { superuserUrl, ownerUrl, ...logins });
  return async () => {
    await server.stop({ hurry: true });
    const left = readdirSync(scratch);
    rmSync(directory, { recursive: true, force: true });
    if (left.length > 0) throw new Error(`tests left files behind: ${left.join(", ")}`);
  };
}
