// A vitest reporter: prints the files that took longest, and those that used most of the processors, where time can be
// saved. Files that run side by side share the cores, so the times of one run compare with each other, not with those of
// another machine; processor time depends on the machine only. All files are in test-output/times.tsv.

import { writeFileSync } from "node:fs";
import { relative } from "node:path";
import type { Reporter, TestModule } from "vitest/node";

const MOST_FILES = 15;

export class SlowestFiles implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    if (modules.length < 2) return;
    const sum = modules.reduce((ms, module) => ms + processorTime(module), 0);
    print(`Slowest of ${modules.length} files`, modules, wallTime);
    const lines = modules.map((module) => [pathOf(module), wallTime(module), processorTime(module)].join("\t"));
    writeFileSync("test-output/times.tsv", `file\twall ms\tprocessor ms\n${lines.join("\n")}\n`);
    print(`Most processor time, of ${(sum / 1000).toFixed(0)} s`, modules, processorTime);
  }
}

function print(title: string, modules: readonly TestModule[], msOf: (module: TestModule) => number): void {
  const files = modules.map((module) => ({ path: pathOf(module), ms: msOf(module) }));
  process.stdout.write(`\n${title}:\n`);
  for (const { path, ms } of files.toSorted((a, b) => b.ms - a.ms).slice(0, MOST_FILES)) {
    process.stdout.write(`${(ms / 1000).toFixed(1).padStart(7)} s  ${path}\n`);
  }
}

function pathOf({ moduleId }: TestModule): string {
  return relative(process.cwd(), moduleId);
}

function processorTime(module: TestModule): number {
  return module.meta().processorMs ?? 0;
}

/** With imports and hooks, which the times of single tests leave out. */
function wallTime(module: TestModule): number {
  const { prepareDuration, environmentSetupDuration, collectDuration, setupDuration, duration } =
    module.diagnostic();
  return prepareDuration + environmentSetupDuration + collectDuration + setupDuration + duration;
}
