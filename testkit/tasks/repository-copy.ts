// A copy of this repository to change: its files as they are now, with git, and with the installed
// packages by link. Our own packages lead into the copy, so what runs there is the copy.

import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { atEnd } from "../lifetime/at-end.ts";

export const repository = fileURLToPath(new URL("../../", import.meta.url));

export type RepositoryCopy = {
  path: string;
  run: (program: string, ...args: string[]) => Promise<{ status: number | null; output: string }>;
  /** Paths that differ from the copy as it was made. */
  changes: () => Promise<string[]>;
  /** SHA-256 by path. */
  digests: () => Map<string, string>;
  /** A line for each, in what is below these folders and whatever that imports, without tests: a third of the work, or less. */
  typeErrors: (...folders: string[]) => Promise<string[]>;
};

export async function copyRepository(): Promise<RepositoryCopy> {
  const path = mkdtempSync(join(tmpdir(), "holdfast-copy-"));
  atEnd(() => rmSync(path, { recursive: true, force: true }));
  for (const file of filesOfRepository()) {
    mkdirSync(dirname(join(path, file)), { recursive: true });
    cpSync(join(repository, file), join(path, file));
  }
  linkPackages(path);
  const run: RepositoryCopy["run"] = async (program, ...args) => {
    const child = spawn(program, args, { cwd: path, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
    const [status] = await once(child, "close");
    return { status, output };
  };
  const git = async (...args: string[]) => {
    const { status, output } = await run(
      "git",
      "-c",
      "user.name=test",
      "-c",
      "user.email=test@localhost",
      ...args,
    );
    if (status !== 0) throw new Error(`git ${args.join(" ")}: ${output}`);
    return output;
  };
  await git("init", "--quiet");
  await git("add", "--all");
  await git("commit", "--quiet", "--message", "as it is");
  return {
    path,
    run,
    changes: async () =>
      (await git("status", "--porcelain", "--untracked-files=all"))
        .split("\n")
        .filter(Boolean)
        .map((line) => line.slice(3)),
    digests: () => digestsOf(path),
    typeErrors: async (...folders) => {
      // In node_modules, where it is no change of the repository.
      const project = join(path, "node_modules/some-folders.tsconfig.json");
      const exclude = ["../**/*.test.ts", "../**/test", "../**/node_modules"];
      const include = folders.map((folder) => `../${folder}`);
      writeFileSync(project, JSON.stringify({ extends: "../tsconfig.json", include, exclude }));
      const { output } = await run(process.execPath, "node_modules/typescript7/bin/tsc", "-p", project);
      return output.split("\n").filter(Boolean);
    },
  };
}

/** Tracked or about to be, and there: somebody may be at work in this tree. */
export function filesOfRepository(): string[] {
  const listed = spawnSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "-z"], {
    cwd: repository,
    encoding: "utf8",
  });
  if (listed.status !== 0) throw new Error(listed.stderr);
  return listed.stdout.split("\0").filter((file) => file !== "" && existsSync(join(repository, file)));
}

function linkPackages(path: string): void {
  const installed = join(repository, "node_modules");
  mkdirSync(join(path, "node_modules/@holdfast"), { recursive: true });
  for (const name of readdirSync(installed).filter((entry) => entry !== "@holdfast"))
    symlinkSync(join(installed, name), join(path, "node_modules", name));
  for (const name of readdirSync(join(installed, "@holdfast")))
    symlinkSync(join("../..", name), join(path, "node_modules/@holdfast", name));
  for (const name of readdirSync(path).filter((entry) => existsSync(join(repository, entry, "node_modules"))))
    symlinkSync(join(repository, name, "node_modules"), join(path, name, "node_modules"));
}

function digestsOf(path: string): Map<string, string> {
  const digests = new Map<string, string>();
  for (const entry of readdirSync(path, { recursive: true, withFileTypes: true })) {
    const file = join(entry.parentPath, entry.name).slice(path.length + 1);
    if (!entry.isFile() || /(^|\/)(\.git|node_modules)\//.test(file)) continue;
    digests.set(
      file,
      createHash("sha256")
        .update(readFileSync(join(path, file)))
        .digest("hex"),
    );
  }
  return digests;
}
