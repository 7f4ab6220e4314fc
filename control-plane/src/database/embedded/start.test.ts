import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { UsageError } from "@holdfast/kit/settings";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { lacks } from "../../../../scripts/facilities.mjs";
import { startEmbeddedPostgres } from "./start.ts";
import { ask, isRoot, openSandbox, type Sandbox } from "./testing/sandbox.ts";

// Databases are made on a disk that others may keep busy.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

describe("an embedded PostgreSQL", () => {
  let sandbox: Sandbox;
  beforeAll(async () => {
    sandbox = await openSandbox();
  });
  afterAll(() => sandbox.cleanUp());

  it("OPS-01 is made on the first start, with two logins and a database", async () => {
    const server = await sandbox.start();
    expect(server.version).toMatch(/^18\./);
    expect(await ask(server.superuserUrl, "SELECT current_user::text")).toBe("postgres");
    expect(await ask(server.ownerUrl, "SELECT current_user || '@' || current_database()")).toBe(
      "holdfast_owner@holdfast",
    );
    await server.stop();
  });

  it("OPS-01 is started again with what it held", async () => {
    const first = await sandbox.start();
    await ask(first.ownerUrl, "CREATE TABLE kept AS SELECT 7 AS number");
    await first.stop();
    const second = await sandbox.start();
    expect(await ask(second.ownerUrl, "SELECT number FROM kept")).toBe(7);
    expect(second.ownerUrl).toBe(first.ownerUrl);
    await second.stop();
  });

  it("OPS-01 leaves no process and no socket when it is stopped", async () => {
    const server = await sandbox.start();
    expect(sandbox.processes()).toContain(server.pid);
    await server.stop();
    expect(sandbox.processes()).toEqual([]);
    expect(readdirSync(join(sandbox.directory, "run"))).toEqual([]);
  });

  it("OPS-01 keeps every acknowledged commit on disk, and orders text the same everywhere", async () => {
    const server = await sandbox.start();
    const setting = (name: string) => ask(server.superuserUrl, `SELECT current_setting('${name}')`);
    expect(await setting("fsync")).toBe("on");
    expect(await setting("synchronous_commit")).toBe("on");
    expect(await setting("data_checksums")).toBe("on");
    expect(await setting("listen_addresses")).toBe("");
    expect(await ask(server.ownerUrl, "SELECT pg_encoding_to_char(encoding) FROM pg_database LIMIT 1")).toBe(
      "UTF8",
    );
    expect(await ask(server.ownerUrl, "SELECT 'Z' < 'a' COLLATE \"default\"")).toBe(true);
    await server.stop();
  });

  it("SEC-03 has an owner who is no superuser", async () => {
    const server = await sandbox.start();
    expect(await ask(server.ownerUrl, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user")).toBe(false);
    await server.stop();
  });

  it("SEC-03 refuses a wrong password, and no password", async () => {
    const server = await sandbox.start();
    const wrong = server.ownerUrl.replace(/:[^:@/]+@/, ":wrong@");
    await expect(ask(wrong, "SELECT 1")).rejects.toThrow(/password authentication failed/);
    const none = server.superuserUrl.replace(/:[^:@/]+@/, "@");
    await expect(ask(none, "SELECT 1")).rejects.toThrow(/password/i);
    await server.stop();
  });

  it("SEC-03 keeps passwords where only we read them", () => {
    expect(statSync(join(sandbox.directory, "credentials.json")).mode & 0o777).toBe(0o600);
    expect(statSync(join(sandbox.directory, "run")).mode & 0o777).toBe(0o700);
    expect(statSync(sandbox.dataDirectory).mode & 0o777).toBe(0o700);
    expect(statSync(join(sandbox.directory, "credentials.json")).uid).toBe(process.getuid?.());
  });

  it("OPS-01 sets new passwords when the file with them is lost, and keeps the data", async () => {
    unlinkSync(join(sandbox.directory, "credentials.json"));
    const notes: string[] = [];
    const server = await sandbox.start({ onProgress: (text) => notes.push(text) });
    expect(notes.join()).toContain("passwords of the database are lost");
    expect(await ask(server.ownerUrl, "SELECT number FROM kept")).toBe(7);
    await server.stop();
  });

  it("OPS-01 refuses a database of another major version by name", async () => {
    const other = await openSandbox();
    mkdirSync(other.dataDirectory, { recursive: true });
    writeFileSync(join(other.dataDirectory, "PG_VERSION"), "13\n");
    if (isRoot) chownSync(other.dataDirectory, 65534, 65534);
    await expect(startEmbeddedPostgres({ directory: other.directory })).rejects.toThrow(
      /created by PostgreSQL 13/,
    );
    await other.cleanUp();
  });
});

describe("where the embedded PostgreSQL may lie", () => {
  it("OPS-01 works below a path that is too long for a socket", async () => {
    const sandbox = await openSandbox({ below: `${"a-long-name/".repeat(12)}postgres` });
    const server = await sandbox.start();
    expect(await ask(server.ownerUrl, "SELECT 1")).toBe(1);
    const socketDirectory = decodeURIComponent(new URL(server.ownerUrl).hostname);
    expect(socketDirectory.length).toBeLessThan(60);
    expect(statSync(socketDirectory).mode & 0o777).toBe(0o700);
    await server.stop();
    expect(statSync(socketDirectory, { throwIfNoEntry: false })).toBeUndefined();
    await sandbox.cleanUp();
  });

  it.skipIf(lacks("root"))("OPS-01 names the directory that its account cannot pass", async () => {
    const sandbox = await openSandbox({ below: "closed/data/postgres" });
    const closed = join(sandbox.directory, "../..");
    mkdirSync(closed, { recursive: true });
    chmodSync(closed, 0o700);
    const refusal = await startEmbeddedPostgres({ directory: sandbox.directory }).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(UsageError);
    expect((refusal as Error).message).toContain(closed);
    expect((refusal as Error).message).toContain("HOLDFAST_DATA_DIR");
    rmSync(closed, { recursive: true });
    await sandbox.cleanUp();
  });
});
