// A copied file system is the one that mke2fs makes: the kernel mounts it, and its checker finds nothing wrong with it.

import { execFile } from "node:child_process";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { lacks } from "../../../../scripts/facilities.mjs";
import { scratchDirectory } from "../../../../testkit/agent/scratch.ts";
import { emptyDisks } from "../../../src/drivers/sandbox/empty-disks.ts";

const MEBIBYTE = 1024 * 1024;
const exec = promisify(execFile);

describe.skipIf(lacks("root") || lacks("e2fsprogs"))("an empty file system", () => {
  // The last one is larger than those that are copied.
  it.for([1, 4.25, 128, 300])("SBX-02 of %d MiB is sound, as often as it is written", async (size) => {
    const [directory, disks] = [scratchDirectory(), emptyDisks()];
    const files = ["one", "other"].map((name) => join(directory, name));
    await Promise.all(files.map((file) => disks.write(file, size * MEBIBYTE)));
    expect(readdirSync(directory).toSorted()).toEqual(["one", "other"]);
    for (const file of files) {
      expect([statSync(file).size, statSync(file).mode & 0o777]).toEqual([size * MEBIBYTE, 0o600]);
      await expect(exec("e2fsck", ["-f", "-n", file])).resolves.toBeDefined();
    }
  });

  it("SBX-02 that cannot be made is tried again with the next run", async () => {
    const [directory, disks] = [scratchDirectory(), emptyDisks()];
    await expect(disks.write(join(directory, "missing", "disk"), MEBIBYTE)).rejects.toThrow(/ENOENT/);
    await disks.write(join(directory, "disk"), MEBIBYTE);
    expect(readdirSync(directory)).toEqual(["disk"]);
  });
});
