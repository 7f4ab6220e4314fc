// A copy of the product's sources with more task types in it: a new type is a folder below tasks/
// and nothing else, so a copy with such a folder is all a test needs to have types of its own.

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
const packages = [
  "contracts",
  "kit",
  "service",
  "tasks",
  "control-plane",
  "gateway",
  "node-agent",
  "workflows",
  "cli",
];

export type Checkout = { root: string /** Of the copy. */; command: string; remove(): void };

const checkModules = new URL("../../scripts/agent-checks/modules.ts", import.meta.url).href;
/** In a process of its own: what is loaded from the copy must not stay in this one. */
const writeChecks = `import { writeCheckModules } from ${JSON.stringify(checkModules)}; await writeCheckModules(process.argv[1]);`;

/** `files` by their path below the root, such as `tasks/test.mark/contract.ts`. */
export function copyCheckout(files: Record<string, string>): Checkout {
  const copy = mkdtempSync(join(tmpdir(), "holdfast-checkout-"));
  for (const name of packages) {
    cpSync(join(root, name), join(copy, name), {
      recursive: true,
      filter: (path) => !/\/(node_modules|dist)($|\/)|[.]test[.]ts$/.test(path.slice(root.length - 1)),
    });
  }
  cpSync(join(root, "package.json"), join(copy, "package.json"));
  linkModules(copy);
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(copy, path)), { recursive: true });
    writeFileSync(join(copy, path), content);
  }
  execFileSync(process.execPath, ["--input-type=module", "--eval", writeChecks, copy]);
  return {
    root: copy,
    command: join(copy, "cli/bin/holdfast.mjs"),
    remove: () => rmSync(copy, { recursive: true, force: true }),
  };
}

/** Other people's packages are shared; ours are the copy's own. */
function linkModules(copy: string): void {
  const modules = join(copy, "node_modules");
  mkdirSync(join(modules, "@holdfast"), { recursive: true });
  for (const name of readdirSync(join(root, "node_modules"))) {
    if (name === "@holdfast" || name === ".cache") continue;
    symlinkSync(join(root, "node_modules", name), join(modules, name));
  }
  for (const name of packages) symlinkSync(join(copy, name), join(modules, "@holdfast", name));
}
