// How the installer enrolls a machine, run on its own: with a state directory and a command of the test's, as any user.

import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { atEnd } from "../testkit/lifetime/at-end.ts";

const installer = fileURLToPath(new URL("../deploy/install-agent.sh", import.meta.url));
/** All functions, and nothing that is run. */
const functions = readFileSync(installer, "utf8").replace(/main "\$@"\nexit\n$/, "");

/** What is printed when this machine joins, among that the arguments of `holdfast`. */
function enroll(options: string, { token, isNode }: { token: string; isNode: boolean }): string {
  const root = mkdtempSync(join(tmpdir(), "holdfast-installer-"));
  atEnd(() => rmSync(root, { recursive: true, force: true }));
  const bin = join(root, "prefix/versions/1/bin");
  mkdirSync(bin, { recursive: true });
  mkdirSync(join(root, "state"));
  writeFileSync(join(bin, "holdfast"), '#!/bin/sh\necho "holdfast $* < $(cat)"\n');
  chmodSync(join(bin, "holdfast"), 0o755);
  if (isNode) {
    writeFileSync(join(root, "state/agent.json"), '{\n  "node_name": "old-node"\n}\n');
    writeFileSync(join(root, "state/identity.pem"), "");
  }
  const script = `${functions}
    PREFIX=${root}/prefix STATE=${root}/state new=1 token=${token}
    api='' name='' rejoin='' new_node='' start=yes
    read_options --api https://nodes.example.com ${options}
    join_server`;
  const { stdout, stderr, status } = spawnSync("sh", ["-c", script], { encoding: "utf8" });
  expect([status, stderr]).toEqual([0, ""]);
  return stdout;
}

describe("the installer on a machine", () => {
  const joins = "holdfast agent join --token - --api https://nodes.example.com";

  it("AGENT-09 enrolls it, with the token on standard input", () => {
    expect(enroll("", { token: "hfe_x", isNode: false })).toBe(`✓ ${joins} < hfe_x\n`);
  });

  it("ID-09 that is a node already changes nothing, and says how it becomes a new one", () => {
    const said = enroll("", { token: "hfe_x", isNode: true });
    expect(said).toContain("already the node old-node");
    expect(said).toContain("--new-node");
    expect(said).not.toContain("holdfast agent join");
  });

  it("ID-09 that has the state of a retired node enrolls it as a new one with --new-node", () => {
    expect(enroll("--new-node", { token: "hfe_x", isNode: true })).toBe(`✓ ${joins} --force < hfe_x\n`);
    expect(enroll("--rejoin", { token: "hfe_x", isNode: true })).toBe(`✓ ${joins} < hfe_x\n`);
  });

  it("ID-09 uses a bootstrap token at once for a new node, because an agent with an identity would not", () => {
    expect(enroll("--new-node", { token: "hfb_x", isNode: true })).toContain("--force < hfb_x");
    expect(enroll("", { token: "hfb_x", isNode: false })).not.toContain("holdfast agent join");
  });
});
