// npm run check: everything about the code that needs no running system. All checks run in parallel
// and all report, so that one run shows everything to correct.

import { spawn } from "node:child_process";
import { join } from "node:path";
import { node, prepare, root, withOwnNode } from "./prepare.mjs";

const bin = (name) => join(root, "node_modules/.bin", name);
const tsc = join(root, "node_modules/typescript7/bin/tsc");

const checks = [
  { name: "types", command: [node, tsc, "-p", "."] },
  { name: "types of the web app", command: [node, tsc, "-p", "web"] },
  { name: "lint and format", command: [bin("biome"), "check", "--error-on-warnings", "."] },
  { name: "boundaries", command: [node, "scripts/check-boundaries.ts"] },
  { name: "sizes", command: [node, "scripts/check-sizes.ts"] },
  { name: "unused code", command: [bin("knip")] },
  { name: "words", command: [node, "scripts/check-words.ts"] },
  { name: "generated files", command: [node, "scripts/generate.ts", "--check"] },
];

await prepare();
const results = await Promise.all(checks.map(runCheck));
process.exit(results.every(Boolean) ? 0 : 1);

function runCheck({ name, command: [program, ...args] }) {
  const started = Date.now();
  return new Promise((resolve) => {
    const child = spawn(program, args, { cwd: root, env: withOwnNode(), stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
    child.on("exit", (code) => {
      const seconds = ((Date.now() - started) / 1000).toFixed(1);
      process.stdout.write(
        `${code === 0 ? "✓" : "✗"} ${name} ${seconds} s\n${code === 0 ? "" : `${output.trim()}\n`}`,
      );
      resolve(code === 0);
    });
  });
}
