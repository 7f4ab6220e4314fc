import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { RecoveryBundle } from "@holdfast/contracts/node/recovery-bundle";
import { describe, expect, it } from "vitest";
import { scratchDirectory } from "../../../testkit/agent/scratch.ts";
import { hostFilesOf, installFiles, restoreFiles, withoutSettings } from "./host-files.ts";
import { disk } from "./staged.ts";

const UNIT = "etc/systemd/system/holdfast-agent.service";
const ENV = "etc/holdfast/agent.env";
const bundle = {
  content: {
    files: {
      unit: { path: `/${UNIT}`, content: "new unit\n" },
      env: { path: `/${ENV}`, content: "# empty\n", unset: ["HOLDFAST_NODE_API_URL"] },
    },
  },
} as unknown as RecoveryBundle;

function tree(content: Record<string, string>): { root: string; stateDir: string } {
  const root = scratchDirectory();
  for (const folder of ["etc/holdfast", "etc/systemd/system", "home/state"]) {
    mkdirSync(join(root, folder), { recursive: true });
  }
  for (const [path, text] of Object.entries(content)) writeFileSync(join(root, path), text);
  return { root, stateDir: join(root, "etc/holdfast") };
}

describe("files of an installation", () => {
  it("ID-07 are written where they differ, and restored", () => {
    const at = tree({ [UNIT]: "old unit\n", [ENV]: "A=1\n HOLDFAST_NODE_API_URL = x\n" });
    const files = hostFilesOf(bundle, at);
    expect(files.map(({ path }) => path)).toEqual([join(at.root, UNIT), join(at.root, ENV)]);
    installFiles(files, disk);
    installFiles(files, disk);
    expect(readFileSync(join(at.root, UNIT), "utf8")).toBe("new unit\n");
    expect(readFileSync(join(at.root, ENV), "utf8")).toBe("A=1\n");
    expect(hostFilesOf(bundle, at)).toEqual([]);
    restoreFiles(files, disk);
    restoreFiles(files, disk);
    expect(readFileSync(join(at.root, UNIT), "utf8")).toBe("old unit\n");
  });

  it("ID-07 are left alone where somebody else changed them since", () => {
    const at = tree({ [UNIT]: "old unit\n", [ENV]: "" });
    const files = hostFilesOf(bundle, at);
    writeFileSync(join(at.root, UNIT), "of somebody else\n");
    installFiles(files, disk);
    restoreFiles(files, disk);
    expect(readFileSync(join(at.root, UNIT), "utf8")).toBe("of somebody else\n");
  });

  it("ID-07 are nobody's where the agent was not installed by the installer", () => {
    const at = tree({ [UNIT]: "old unit\n" });
    expect(hostFilesOf(bundle, { ...at, stateDir: join(at.root, "home/state") })).toEqual([]);
    const withoutUnit = tree({});
    expect(hostFilesOf(bundle, withoutUnit).map(({ path, before }) => [path, before])).toEqual([
      [join(withoutUnit.root, ENV), null],
    ]);
  });

  it("ID-07 keep every setting but those that the bundle decides", () => {
    const env =
      "# HOLDFAST_NODE_API_URL=in a comment\nHOLDFAST_NODE_API_URL_2=1\nHOLDFAST_NODE_API_URL=https://old\nB=2";
    expect(withoutSettings(env, ["HOLDFAST_NODE_API_URL"])).toBe(
      "# HOLDFAST_NODE_API_URL=in a comment\nHOLDFAST_NODE_API_URL_2=1\nB=2",
    );
  });
});
