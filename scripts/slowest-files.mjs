// A vitest reporter: prints the files that took longest, where time can be saved. Side by side files share the cores,
// so the times of one run compare with each other, not with those of another machine.

import { relative } from "node:path";

const MOST_FILES = 15;

export default class SlowestFiles {
  onTestRunEnd(modules) {
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
function wallTime(module) {
  const { prepareDuration, environmentSetupDuration, collectDuration, setupDuration, duration } =
    module.diagnostic();
  return prepareDuration + environmentSetupDuration + collectDuration + setupDuration + duration;
}
