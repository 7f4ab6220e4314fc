// Scripts that write down each of their runs in a file outside of the product, and wait until the test lets them end.

import { appendFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readStat } from "@holdfast/kit/processes";
import { scratchDirectory } from "../../../testkit/agent/scratch.ts";

export function countedSteps(directory = scratchDirectory()) {
  const file = join(directory, "runs");
  const gate = join(directory, "gate");
  const leader = join(directory, "leader");
  if (!existsSync(file)) writeFileSync(file, "");
  return {
    /** A line for each run, then waits for `release`. */
    script: (name: string) =>
      `echo $$ > ${leader}; echo ${name} >> ${file}; while [ ! -e ${gate} ]; do sleep 0.05; done`,
    runs: () => readFileSync(file, "utf8").trim().split("\n").filter(Boolean),
    release: () => appendFileSync(gate, ""),
    /** Processes of the group or session of the last script, and those that still have its mark. */
    group() {
      const pid = Number(readFileSync(leader, "utf8"));
      const mark = markOf(pid);
      return () =>
        readdirSync("/proc")
          .filter((name) => /^\d+$/.test(name))
          .map(Number)
          .filter((one) => {
            const stat = readStat(one);
            if (!stat || stat.state === "Z") return false;
            return stat.group === pid || stat.session === pid || (mark !== undefined && markOf(one) === mark);
          });
    },
  };
}

function markOf(pid: number): string | undefined {
  try {
    const environment = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
    return environment.find((one) => one.startsWith("HOLDFAST_EXECUTION_RUN="));
  } catch {
    return undefined;
  }
}
