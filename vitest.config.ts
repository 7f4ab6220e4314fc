// All tests. One PostgreSQL serves them (globalSetup); each file gets a database of its own.

import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { SlowestFiles } from "./scripts/slowest-files.ts";

/** Otherwise small files come last, and those of the torture are small: all would wait for them at the end. */
class TortureFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isTorture = ({ moduleId }: TestSpecification) => moduleId.includes("/torture/");
    const sorted = await super.sort(files);
    return [...sorted.filter(isTorture), ...sorted.filter((file) => !isTorture(file))];
  }
}

export default defineConfig({
  test: {
    include: [
      "{contracts,kit,service,tasks,control-plane,gateway,node-agent,cli,web,bench,chaos,scripts}/**/*.test.ts",
    ],
    exclude: ["**/node_modules/**", "**/dist/**"],
    globalSetup: ["control-plane/test/support/global-setup.ts"],
    setupFiles: ["control-plane/test/support/clean-up.ts"],
    pool: "forks",
    // One more than there are cores: most files wait for processes that they started.
    maxWorkers: 3,
    reporters: ["default", "json", new SlowestFiles()],
    outputFile: { json: "test-output/results.json" },
    sequence: { sequencer: TortureFirst },
    // What is waited for comes at once on a free machine; on a busy one it may take its time.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { requireAssertions: true, poll: { timeout: 20_000 } },
  },
});
