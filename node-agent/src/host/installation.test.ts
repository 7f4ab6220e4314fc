import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";
import { watchInstallation } from "./installation.ts";

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

function tree() {
  const root = mkdtempSync(join(tmpdir(), "installation-"));
  atEnd(() => rmSync(root, { recursive: true, force: true }));
  const write = (path: string, text: string) => {
    mkdirSync(join(root, path, ".."), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  return { root, write };
}

describe("the installation of an agent", () => {
  it("AGENT-06 is where its program is, and the digests of unit and env file", () => {
    const { root, write } = tree();
    write("opt/versions/1/lib/agent.mjs", "");
    symlinkSync("versions/1", join(root, "opt/current"));
    write("etc/systemd/system/holdfast-agent.service", "[Service]");
    write("state/agent.env", "SECRET=1");
    const program = join(root, "opt/current/lib/agent.mjs");
    const found = watchInstallation({ stateDir: join(root, "state"), program, root });
    const expected = {
      install_root: join(root, "opt/versions/1"),
      unit_sha256: sha256("[Service]"),
      env_sha256: sha256("SECRET=1"),
    };
    expect(found()).toEqual(expected);
    write("state/agent.env", "SECRET=22");
    expect(found()).toEqual({ ...expected, env_sha256: sha256("SECRET=22") });
    rmSync(join(root, "etc"), { recursive: true });
    expect(found()).toEqual({ ...expected, unit_sha256: null, env_sha256: sha256("SECRET=22") });
  });

  it("AGENT-06 is unknown where there is none, and never an error", () => {
    const { root, write } = tree();
    const found = watchInstallation({ stateDir: join(root, "state"), program: join(root, "gone"), root });
    expect(found()).toEqual({ install_root: null, unit_sha256: null, env_sha256: null });
    mkdirSync(join(root, "state/agent.env"), { recursive: true });
    expect(found().env_sha256).toBeNull();
    rmSync(join(root, "state"), { recursive: true });
    write("state/agent.env", "x".repeat(1024 * 1024 + 1));
    chmodSync(join(root, "state/agent.env"), 0o600);
    expect(found().env_sha256).toBeNull();
  });
});
