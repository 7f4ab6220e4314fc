// All tests. One PostgreSQL serves them (globalSetup); each file gets a database of its own.

import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { UnhandledErrors } from "./scripts/second-run.mjs";
import { SlowestFiles } from "./scripts/slowest-files.ts";

/**
 * The files that take longest, longest first. vitest goes by size where it has no times of an earlier run, and the lab
 * would run last, alone.
 */
const longest = [
  "chaos/test/chaos.test.ts",
  "cli/test/terminals/failures.test.ts",
  "/torture/",
  "web/test/terminal",
  "chaos/",
  "cli/test/",
  "web/test/",
  "node-agent/test/",
];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const turnOf = ({ moduleId }: TestSpecification) => longest.findIndex((part) => moduleId.includes(part)) >>> 0;
    return (await super.sort(files)).toSorted((a, b) => turnOf(a) - turnOf(b));
  }
}

/** Whole installations and pages: a file takes so long that a worker of its own costs nothing. */
const wholes = ["{cli,web,chaos}/test/**/*.test.ts"];
const all = [
  "{contracts,kit,service,tasks,workflows,control-plane,gateway,node-agent,terminal-client,cli,web,bench,chaos,scripts,testkit}/**/*.test.ts",
];
const never = ["**/node_modules/**", "**/dist/**"];

const common = {
  setupFiles: ["testkit/lifetime/clean-up.ts"],
  pool: "forks" as const,
  // What is waited for comes at once on a free machine; on a busy one it may take its time.
  testTimeout: 300_000,
  hookTimeout: 300_000,
  expect: { requireAssertions: true, poll: { timeout: 100_000 } },
};

export default defineConfig({
  test: {
    globalSetup: ["testkit/database/global-setup.ts"],
    // Two more than there are cores: most files wait for processes that they started.
    maxWorkers: 4,
    reporters: ["default", "json", new SlowestFiles(), new UnhandledErrors()],
    outputFile: { json: "test-output/results.json" },
    sequence: { sequencer: LongestFirst },
    projects: [
      { test: { ...common, name: "wholes", include: wholes, exclude: never } },
      // Two hundred files: many share a worker, which loads the code once. Alone, each would take most of a second for that.
      { test: { ...common, name: "parts", include: all, exclude: [...never, ...wholes], isolate: false } },
    ],
  },
});
