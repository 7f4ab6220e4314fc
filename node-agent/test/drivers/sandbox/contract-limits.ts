// Each limit is exceeded, and named. Scripts use little, so that they do no harm where nothing limits them.

import { expect } from "vitest";
import { type ContractCheck, roomy, run } from "./bench.ts";

const MEBIBYTE = 1024 * 1024;

export const limitContract: ContractCheck[] = [
  {
    name: "a run that exceeds its memory is ended, and the limit is named",
    needs: "memory",
    async check(bench) {
      const script = "x=$(head -c 67108864 /dev/zero | tr '\\0' x); echo survived";
      const limits = { ...roomy, memoryBytes: 32 * MEBIBYTE };
      const { exitCode, hit, stdout } = await run(bench, { script, limits });
      expect([exitCode === 0, hit, stdout]).toEqual([false, ["memory"], ""]);
    },
  },
  {
    name: "a run gets no more processes than its limit, and the limit is named",
    needs: "pids",
    async check(bench) {
      const script = "i=0; while [ $i -lt 60 ]; do sleep 1000 & i=$((i+1)); done 2>/dev/null; echo survived";
      const { hit, stdout } = await run(bench, { script, limits: { ...roomy, pids: 24 } });
      expect([hit, stdout]).toEqual([["pids"], ""]);
    },
  },
  {
    name: "a run that fills /work gets no more of it, and the limit is named",
    needs: "disk",
    async check(bench) {
      const script = "head -c 12582912 /dev/zero > much; echo $?; stat -c %s much";
      const { hit, stdout } = await run(bench, { script, limits: { ...roomy, diskBytes: 4 * MEBIBYTE } });
      const [status, size] = stdout.trim().split("\n").map(Number);
      expect([status === 0, Number(size) <= 4 * MEBIBYTE, hit]).toEqual([false, true, ["disk"]]);
    },
  },
  {
    name: "a run that removes what filled /work has hit the limit all the same",
    needs: "disk",
    async check(bench) {
      const script = "head -c 12582912 /dev/zero > much; sleep 1.5; rm much";
      const { hit } = await run(bench, { script, limits: { ...roomy, diskBytes: 4 * MEBIBYTE } });
      expect(hit).toEqual(["disk"]);
    },
  },
  {
    name: "a run that needs more processor than its limit is held back, and the limit is named",
    needs: "cpu",
    async check(bench) {
      const script = "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done; echo done";
      const { exitCode, hit, stdout } = await run(bench, { script, limits: { ...roomy, cpus: 0.05 } });
      expect([exitCode, hit, stdout]).toEqual([0, ["cpu"], "done\n"]);
    },
  },
  {
    name: "a run within its limits has hit none",
    async check(bench) {
      expect((await run(bench, { script: "echo small > file; cat file; exit 3" })).hit).toEqual([]);
    },
  },
];
