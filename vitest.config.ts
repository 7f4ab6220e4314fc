// All tests. One PostgreSQL serves them (globalSetup); each file gets a database of its own.

import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: [
      "{contracts,kit,service,tasks,control-plane,gateway,node-agent,cli,web,bench,chaos,scripts}/**/*.test.ts",
    ],
    exclude: ["**/node_modules/**", "**/dist/**"],
    globalSetup: ["control-plane/test/support/global-setup.ts"],
    pool: "forks",
    // One more than there are cores: most files wait for processes that they started.
    maxWorkers: 3,
    // What is waited for comes at once on a free machine; on a busy one it may take its time.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { requireAssertions: true, poll: { timeout: 20_000 } },
  },
});
