// What every sandbox driver owes to the steps, as checks that can be run against any implementation: the real ones, and the
// faulty one that proves that the checks can fail. Every wait is bounded by the check's own deadline.

import { existsSync, readFileSync } from "node:fs";
import { identify } from "@holdfast/kit/processes";
import { expect } from "vitest";
import { atEnd } from "../../../../testkit/lifetime/at-end.ts";
import type {
  OutputStream,
  SandboxDriver,
  SandboxOrder,
  SandboxRun,
} from "../../../src/drivers/sandbox/driver.ts";

export type ContractCheck = { name: string; check: (bench: Bench) => Promise<void> };

/** `place`: a directory that scripts of this driver can write to, and the test can read. */
export type Bench = { driver: SandboxDriver; place: string; withinMs: number };

export const sandboxContract: ContractCheck[] = [
  {
    name: "a script runs, prints to both streams, and ends with its exit code",
    async check(bench) {
      const { exitCode, stdout, stderr } = await run(bench, { script: "echo out; echo err >&2; exit 7" });
      expect([exitCode, stdout, stderr]).toEqual([7, "out\n", "err\n"]);
    },
  },
  {
    name: "a script that dies by a signal has an exit code all the same",
    async check(bench) {
      expect((await run(bench, { script: "kill -TERM $$" })).exitCode).toBe(143);
    },
  },
  {
    name: "a script may be longer than an argument can be, and contain any character",
    async check(bench) {
      const script = `# ${"x".repeat(180_000)}\ncat <<'END'\n$HOME "quoted" \`back\` ü 漢 😀\nEND\n`;
      expect((await run(bench, { script })).stdout).toBe('$HOME "quoted" `back` ü 漢 😀\n');
    },
  },
  {
    name: "a script in bash is run by bash",
    async check(bench) {
      const script = "a=(1 2 3); echo $((a[0] + a[2])); type -t shopt";
      expect((await run(bench, { shell: "bash", script })).stdout).toBe("4\nbuiltin\n");
    },
  },
  {
    name: "output of many pieces is complete, in order, and whole characters",
    async check(bench) {
      const script = "i=0; while [ $i -lt 3000 ]; do echo 漢字$i; i=$((i+1)); done";
      const expected = Array.from({ length: 3000 }, (_, index) => `漢字${index}\n`).join("");
      expect((await run(bench, { script })).stdout).toBe(expected);
    },
  },
  {
    name: "nothing of the agent's environment is inherited, and what is given arrives",
    async check(bench) {
      process.env["HOLDFAST_CONTRACT_LEAK"] = "leaked";
      try {
        const { stdout } = await run(bench, { script: "env", env: { GIVEN: "a b=c" }, secret: "hidden" });
        const lines = stdout.split("\n");
        expect(lines).toContain("GIVEN=a b=c");
        expect(lines).toContain("HOLDFAST_EXECUTION_SECRET=hidden");
        expect(stdout).not.toContain("leaked");
      } finally {
        delete process.env["HOLDFAST_CONTRACT_LEAK"];
      }
    },
  },
  {
    name: "neither script nor secret is in the arguments",
    async check(bench) {
      const script = 'secretly=1; tr "\\0" " " < /proc/$$/cmdline';
      expect((await run(bench, { script, secret: "hidden" })).stdout).not.toMatch(/hidden|secretly/);
    },
  },
  {
    name: "a script has a directory of its own, empty, and it is gone afterwards",
    async check(bench) {
      const script = "pwd; ls -A; mkdir -p a/b; touch a/b/c; chmod 000 a/b; chmod 000 a";
      const [first, second] = [await run(bench, { script }), await run(bench, { script })];
      expect(first.stdout.split("\n")).toHaveLength(2);
      expect(first.stdout).not.toBe(second.stdout);
      for (const { stdout } of [first, second]) expect(existsSync(stdout.trim())).toBe(false);
    },
  },
  {
    name: "a script that reads its input finds nothing there",
    async check(bench) {
      expect((await run(bench, { script: "cat; echo end" })).stdout).toBe("end\n");
    },
  },
  {
    name: "a killed script ends with everything that it started, also what has left its group",
    async check(bench) {
      const pids = `${bench.place}/pids`;
      const script = `echo $$ >> ${pids}; sleep 1000 & echo $! >> ${pids}; setsid sh -c 'echo $$ >> ${pids}; sleep 1000' & wait`;
      const started = start(bench, { script });
      await until(bench, () => linesOf(pids).length === 3, "the processes");
      started.handle.kill();
      expect((await ended(bench, started.handle)).exitCode).toBeNull();
      expect(linesOf(pids).filter((pid) => identify(Number(pid)))).toEqual([]);
    },
  },
  {
    name: "what a script leaves running when it ends is ended with it",
    async check(bench) {
      const pids = `${bench.place}/left`;
      const { exitCode } = await run(bench, {
        script: `setsid sh -c 'echo $$ > ${pids}; exec sleep 1000' & while [ ! -s ${pids} ]; do sleep 0.05; done; nohup sleep 1000 & echo $! >> ${pids}`,
      });
      expect(exitCode).toBe(0);
      expect(linesOf(pids)).toHaveLength(2);
      expect(linesOf(pids).filter((pid) => identify(Number(pid)))).toEqual([]);
    },
  },
  {
    name: "a kill after the end changes nothing",
    async check(bench) {
      const { handle } = start(bench, { script: "exit 4" });
      await ended(bench, handle);
      handle.kill();
      expect((await ended(bench, handle)).exitCode).toBe(4);
    },
  },
  {
    name: "what cannot be started is reported in words",
    async check(bench) {
      const { handle } = start(bench, { shell: "no-such-shell" as "sh", script: "true" });
      await expect(ended(bench, handle)).rejects.toThrow(/no-such-shell|not be started/);
    },
  },
  {
    name: "nothing is left to recover after runs that ended",
    async check(bench) {
      await run(bench, { script: "true" });
      expect(await bench.driver.recover()).toBe(0);
    },
  },
];

type Printed = { exitCode: number | null; stdout: string; stderr: string };

function start(
  bench: Bench,
  order: Partial<SandboxOrder>,
): { handle: SandboxRun; printed: Record<OutputStream, string> } {
  const printed = { stdout: "", stderr: "" };
  const handle = bench.driver.run({
    ...{ shell: "sh", script: "", env: {} },
    onOutput: (stream, text) => {
      printed[stream] += text;
    },
    ...order,
  });
  handle.ended.catch(() => undefined);
  atEnd(() => handle.kill());
  return { handle, printed };
}

async function run(bench: Bench, order: Partial<SandboxOrder>): Promise<Printed> {
  const { handle, printed } = start(bench, order);
  const { exitCode } = await ended(bench, handle);
  return { exitCode, ...printed };
}

function ended(bench: Bench, handle: SandboxRun) {
  const late = new Promise<never>((_, reject) => {
    setTimeout(() => reject(new Error(`the run did not end within ${bench.withinMs} ms`)), bench.withinMs).unref();
  });
  return Promise.race([handle.ended, late]);
}

async function until(bench: Bench, condition: () => boolean, what: string): Promise<void> {
  const deadline = Date.now() + bench.withinMs;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`${what}: not within ${bench.withinMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

function linesOf(path: string): string[] {
  return existsSync(path) ? readFileSync(path, "utf8").split("\n").filter(Boolean) : [];
}
