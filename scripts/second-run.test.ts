import { describe, expect, it } from "vitest";
import { countTests, failures, filesForSecondRun, MOST_FILES } from "./second-run.mjs";

const root = "/checkout";
const test = (status: string, message = "") => ({
  status,
  fullName: `a ${status} test`,
  failureMessages: [message],
});
const file = (name: string, ...tests: ReturnType<typeof test>[]) => ({
  name: `${root}/${name}`,
  status: tests.every(({ status }) => status !== "failed") && tests.length > 0 ? "passed" : "failed",
  message: tests.length > 0 ? "" : "Cannot find module\nat once",
  assertionResults: tests,
});
const passing = file("a.test.ts", test("passed"), test("passed"), test("pending"));
const failing = file("b.test.ts", test("passed"), test("failed", "expected 1 to be 2\nat b.test.ts:3"));

describe("a second run", () => {
  it("is of the files that failed, also of one that could not be loaded", () => {
    const report = { testResults: [passing, failing, file("c.test.ts")] };
    expect(filesForSecondRun(report, [], root)).toEqual(["b.test.ts", "c.test.ts"]);
  });

  it("is of none where many failed, and where no test did", () => {
    const many = Array.from({ length: MOST_FILES + 1 }, (_, index) => file(`${index}.test.ts`));
    expect(filesForSecondRun({ testResults: many }, [], root)).toEqual([]);
    expect(filesForSecondRun({ testResults: [passing] }, [], root)).toEqual([]);
  });

  it("is of none where something failed outside of tests, or the run was cut short", () => {
    const report = { testResults: [failing] };
    expect(filesForSecondRun(report, ["socket hang up"], root)).toEqual([]);
    expect(filesForSecondRun(report, undefined, root)).toEqual([]);
    expect(filesForSecondRun(undefined, [], root)).toEqual([]);
  });

  it("leaves in the output how the first one failed", () => {
    expect(failures({ testResults: [passing, failing, file("c.test.ts")] }, root)).toEqual([
      "b.test.ts: a failed test: expected 1 to be 2",
      "c.test.ts: Cannot find module",
    ]);
  });

  it("counts in place of the first one, for its files only", () => {
    const report = { testResults: [passing, failing] };
    expect(countTests(report, undefined)).toEqual({ passed: 3, failed: 1, skipped: 1 });
    const second = { testResults: [file("b.test.ts", test("passed"), test("passed"))] };
    expect(countTests(report, second)).toEqual({ passed: 4, failed: 0, skipped: 1 });
    expect(countTests(report, { testResults: [failing] })).toEqual({ passed: 3, failed: 1, skipped: 1 });
  });
});
