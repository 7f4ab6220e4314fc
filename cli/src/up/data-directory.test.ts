import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { UsageError } from "@holdfast/kit/settings";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { lacks } from "../../../scripts/facilities.mjs";
import { openDataDirectory } from "./data-directory.ts";

const me = process.getuid?.() ?? 0;
let path: string;
beforeEach(() => {
  path = join(mkdtempSync(join(tmpdir(), "holdfast-data-")), "data");
});
afterEach(() => rmSync(join(path, ".."), { recursive: true, force: true }));

const open = (uid = me) => openDataDirectory(path, { othersPassThrough: false, uid });

function refusal(uid?: number): string {
  try {
    open(uid);
  } catch (error) {
    expect(error).toBeInstanceOf(UsageError);
    return (error as Error).message;
  }
  return "none";
}

describe("a data directory", () => {
  it("SEC-03 is made for its user alone, and opened again", () => {
    open();
    expect(statSync(path).mode & 0o777).toBe(0o700);
    for (const name of ["kek", "operator-token", "dispatch-token"])
      writeFileSync(join(path, name), "secret", { mode: 0o600 });
    expect(refusal()).toBe("none");
  });

  it("SEC-03 of another user is refused, whose owner could plant a token, and is not touched", () => {
    mkdirSync(path, { mode: 0o755 });
    chmodSync(path, 0o755);
    const message = refusal(me + 1);
    expect(message).toContain(`${path} belongs to user id ${me}`);
    expect(message).toContain("HOLDFAST_DATA_DIR");
    expect(statSync(path).mode & 0o777).toBe(0o755);
  });

  it.for(["kek", "operator-token", "dispatch-token"])(
    "SEC-03 is refused when others can reach its file %s",
    (name) => {
      open();
      const file = join(path, name);
      writeFileSync(file, "secret");
      for (const mode of [0o604, 0o640, 0o620, 0o602]) {
        chmodSync(file, mode);
        expect(refusal(), mode.toString(8)).toContain(`chmod 600 ${file}`);
      }
      chmodSync(file, 0o600);
      expect(refusal()).toBe("none");
    },
  );

  it.skipIf(lacks("root")).for(["kek", "operator-token", "dispatch-token"])(
    "SEC-03 is refused when another user made its file %s",
    (name) => {
      open();
      const file = join(path, name);
      writeFileSync(file, "secret", { mode: 0o600 });
      chownSync(file, 65_534, 65_534);
      expect(refusal()).toContain(`chown 0 ${file}`);
    },
  );
});
