// The image that containers of tests run: busybox, bash, perl and nohup of this machine with the libraries that they need, and
// nothing else. There is no registry here, so engines import it from a file.

import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, cpSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { scratchDirectory } from "../agent/scratch.ts";

export const TEST_IMAGE = "localhost/holdfast-test:1";

/** Loaded by path from where it is, so it keeps its place. */
const linked = ["/bin/bash", "/usr/bin/perl", "/usr/bin/nohup"];

/** Returns the path of the file. */
export function buildTestImage(): string {
  const directory = scratchDirectory();
  const root = join(directory, "root");
  for (const path of ["bin", "usr/bin", "etc", "proc", "sys", "dev", "tmp", "work"]) {
    mkdirSync(join(root, path), { recursive: true });
  }
  // As in every common image: what is writable for everybody shows whether the root is read-only.
  mkdirSync(join(root, "var/tmp"), { recursive: true });
  chmodSync(join(root, "var/tmp"), 0o1777);
  writeFileSync(join(root, "etc/passwd"), "root:x:0:0::/:/bin/sh\n");
  copyFileSync("/bin/busybox", join(root, "bin/busybox"));
  for (const name of lines("/bin/busybox", ["--list"])) {
    if (name !== "busybox") symlinkSync("busybox", join(root, "bin", name));
  }
  for (const path of [...linked, ...new Set(linked.flatMap(librariesOf))]) {
    mkdirSync(join(root, dirname(path)), { recursive: true });
    copyFileSync(path, join(root, path));
  }
  const [modules = ""] = lines("/usr/bin/perl", ["-e", "print grep { m{/perl-base$} } @INC"]);
  cpSync(modules, join(root, modules), { recursive: true, filter: (path) => basename(path) !== "unicore" });
  const file = join(directory, "image.tar");
  execFileSync("tar", ["-C", root, "--owner=0", "--group=0", "-cf", file, "."]);
  return file;
}

function librariesOf(program: string): string[] {
  return lines("/usr/bin/ldd", [program]).flatMap((line) => /(\/\S+) \(0x/.exec(line)?.[1] ?? []);
}

function lines(command: string, args: string[]): string[] {
  return execFileSync(command, args, { encoding: "utf8" }).split("\n").filter(Boolean);
}
