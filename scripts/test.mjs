// npm test: prepares the checkout and the machine, then runs the checks and all tests. Arguments
// go to vitest: `npm test -- control-plane/test/people`.

import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { facilities } from "./facilities.mjs";
import { endLeftovers } from "./leftovers.mjs";
import { node, prepare, root, run, withOwnNode } from "./prepare.mjs";

const report = join(root, "test-output/results.json");
const chosen = process.argv.slice(2);

try {
  await prepare();
  await installDebianPackages();
} catch (error) {
  process.stderr.write(`\nerror: ${error.message}\n`);
  process.exit(1);
}

const checked = chosen.length > 0 || (await show(node, ["scripts/check.mjs"])) === 0;
rmSync(report, { force: true });
mkdirSync(join(root, "test-output"), { recursive: true });
// Short: sockets are made below a directory of this name, and their paths are limited.
const mark = `holdfast-tests-${randomBytes(4).toString("hex").slice(1)}`;
const vitest = join(root, "node_modules/vitest/vitest.mjs");
const tested = await show(node, [vitest, "run", ...chosen], { HOLDFAST_TEST_RUN: mark });
const left = await endLeftovers(mark);
// Its own tear-down has removed it unless the run was interrupted.
rmSync(join(tmpdir(), mark), { recursive: true, force: true, maxRetries: 5 });
for (const line of left) process.stdout.write(`The tests left a process behind, which was killed: ${line}\n`);
summarise();
process.exit(checked && tested === 0 && left.length === 0 ? 0 : 1);

/** Only root can install, and only what is missing; for others it is listed at the end. */
async function installDebianPackages() {
  const missing = Object.values(facilities).filter((one) => one.debianPackage && !one.present());
  if (missing.length === 0 || !facilities.root.present()) return;
  const packages = missing.map((one) => one.debianPackage);
  process.stdout.write(
    `  Installing ${packages.join(", ")} from Debian (only the first time; about a minute) …\n`,
  );
  await run("apt-get", ["update", "-q"]);
  await run("apt-get", ["install", "-q", "-y", "--no-install-recommends", ...packages]);
}

function show(command, args, environment = {}) {
  return new Promise((resolve) => {
    const env = { ...withOwnNode(), ...environment };
    const child = spawn(command, args, { cwd: root, stdio: "inherit", env });
    for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
    process.on("SIGINT", () => {});
    child.on("exit", (code) => resolve(code ?? 1));
  });
}

function summarise() {
  const absent = Object.entries(facilities).filter(([, one]) => !one.present());
  for (const [name, { covers, remedy }] of absent) {
    process.stdout.write(`Not run without ${name}: ${covers}. To run it: ${remedy}\n`);
  }
  try {
    const { numPassedTests, numFailedTests, numPendingTests } = JSON.parse(readFileSync(report, "utf8"));
    process.stdout.write(`${numPassedTests} passed, ${numFailedTests} failed, ${numPendingTests} skipped\n`);
  } catch {
    process.stdout.write("The test run ended without a report.\n");
  }
}
