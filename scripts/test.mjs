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
import { countTests, failures, filesForSecondRun } from "./second-run.mjs";

const report = join(root, "test-output/results.json");
const secondReport = join(root, "test-output/second-results.json");
const unhandledErrors = join(root, "test-output/unhandled-errors.json");
let interrupted = false;
const chosen = process.argv.slice(2);

try {
  await prepare();
  await installDebianPackages();
} catch (error) {
  process.stderr.write(`\nerror: ${error.message}\n`);
  process.exit(1);
}

const checked = chosen.length > 0 || (await show(node, ["scripts/check.mjs"])) === 0;
for (const path of [report, unhandledErrors, secondReport]) rmSync(path, { force: true });
mkdirSync(join(root, "test-output"), { recursive: true });
const first = await runTests(chosen);
const canRunAgain = chosen.length === 0 && !first.passed && !interrupted;
const again = canRunAgain ? filesForSecondRun(readReport(report), readReport(unhandledErrors), root) : [];
const second = again.length > 0 ? await runAlone(again) : undefined;
const passed = second ? second.passed && first.left.length === 0 : first.passed;
summarise();
process.exit(checked && passed ? 0 : 1);

/** A run that leaves a process behind has failed. */
async function runTests(args) {
  // Short: sockets are made below a directory of this name, and their paths are limited.
  const mark = `holdfast-tests-${randomBytes(4).toString("hex").slice(1)}`;
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  const code = await show(node, [vitest, "run", ...args], { HOLDFAST_TEST_RUN: mark });
  const left = await endLeftovers(mark);
  // Its own tear-down has removed it unless the run was interrupted.
  rmSync(join(tmpdir(), mark), { recursive: true, force: true, maxRetries: 5 });
  for (const line of left) process.stdout.write(`The tests left a process behind, which was killed: ${line}\n`);
  return { passed: code === 0 && left.length === 0, left };
}

function runAlone(files) {
  process.stdout.write(`\n${files.length} of the files failed and run again, alone: ${files.join(", ")}\n`);
  const reporting = ["--reporter=default", "--reporter=json", `--outputFile.json=${secondReport}`];
  return runTests([...files, ...reporting, "--maxWorkers=1"]);
}

function readReport(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return undefined;
  }
}

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
    const pass = (signal) => {
      interrupted = true;
      // Ctrl-C reaches the child by itself.
      if (signal !== "SIGINT") child.kill(signal);
    };
    for (const signal of ["SIGTERM", "SIGHUP", "SIGINT"]) process.on(signal, pass);
    child.on("exit", (code) => {
      for (const signal of ["SIGTERM", "SIGHUP", "SIGINT"]) process.off(signal, pass);
      resolve(code ?? 1);
    });
  });
}

function summarise() {
  const absent = Object.entries(facilities).filter(([, one]) => !one.present());
  for (const [name, { covers, remedy }] of absent) {
    process.stdout.write(`Not run without ${name}: ${covers}. To run it: ${remedy}\n`);
  }
  const all = readReport(report);
  if (!all) {
    process.stdout.write("The test run ended without a report.\n");
    return;
  }
  if (second) {
    process.stdout.write("Judged by a second run, alone. The first run failed with:\n");
    for (const line of failures(all, root)) process.stdout.write(`  ${line}\n`);
  }
  const { passed, failed, skipped } = countTests(all, second && readReport(secondReport));
  process.stdout.write(`${passed} passed, ${failed} failed, ${skipped} skipped\n`);
}
