// A file of tests that fails in a whole run is run again, alone, when all others have ended, and the second run is judged
// (docs/adr/0067). Nothing of it is hidden: how the first run failed stands at the end of the output.

import { writeFileSync } from "node:fs";
import { relative } from "node:path";

/** More than these are no matter of what ran beside them. */
export const MOST_FILES = 4;

/** The files that have failed, of vitest's report. */
function failedFiles(report, root) {
  return report.testResults.filter(({ status }) => status === "failed").map(({ name }) => relative(root, name));
}

/** A vitest reporter: what failed outside of any test is in no other report. */
export class UnhandledErrors {
  onTestRunEnd(_modules, errors) {
    writeFileSync("test-output/unhandled-errors.json", JSON.stringify(errors.map(({ message }) => message)));
  }
}

/** Of a whole run that has failed: the files whose second run is judged. None: the first run is. */
export function filesForSecondRun(report, unhandled, root) {
  if (!report || unhandled?.length !== 0) return [];
  const failed = failedFiles(report, root);
  return failed.length <= MOST_FILES ? failed : [];
}

/** What has failed in the first run, a line each, with the first line of the reason. */
export function failures(report, root) {
  return report.testResults
    .filter(({ status }) => status === "failed")
    .flatMap(({ name, message, assertionResults }) => {
      const failed = assertionResults.filter(({ status }) => status === "failed");
      const path = relative(root, name);
      if (failed.length === 0) return [`${path}: ${firstLine(message)}`];
      return failed.map(
        ({ fullName, failureMessages }) => `${path}: ${fullName}: ${firstLine(failureMessages[0])}`,
      );
    });
}

/** How many tests passed, failed and were skipped, with the second run of some files in place of their first. */
export function countTests(report, second) {
  const again = new Set((second?.testResults ?? []).map(({ name }) => name));
  const files = [...report.testResults.filter(({ name }) => !again.has(name)), ...(second?.testResults ?? [])];
  const tests = files.flatMap(({ assertionResults }) => assertionResults);
  const count = (...states) => tests.filter(({ status }) => states.includes(status)).length;
  return { passed: count("passed"), failed: count("failed"), skipped: count("skipped", "pending", "todo") };
}

const firstLine = (text = "no message") => text.trim().split("\n", 1)[0].slice(0, 300);
