// A vitest reporter: prints the files that took longest, where time can be saved. Files that run side by side share the
// cores, so the times of one run compare with each other, not with those of another machine.

import { relative } from "node:path";
import type { Reporter, TestModule } from "vitest/node";

const MOST_FILES = 15;

export class SlowestFiles implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    if (modules.length < 2) return;
    const files = modules.map((module) => ({
      path: relative(process.cwd(), module.moduleId),
      ms: wallTime(module),
    }));
    const slowest = files.sort((a, b) => b.ms - a.ms).slice(0, MOST_FILES);
    process.stdout.write(`\nSlowest of ${files.length} files:\n`);
    for (const { path, ms } of slowest) process.stdout.write(`${(ms / 1000).toFixed(1).padStart(7)} s  ${path}\n`);
  }
}

/** With imports and hooks, which the times of single tests leave out. */
function wallTime(module: TestModule): number {
  const { prepareDuration, environmentSetupDuration, collectDuration, setupDuration, duration } =
    module.diagnostic();
  return prepareDuration + environmentSetupDuration + collectDuration + setupDuration + duration;
}
