// What every sandbox driver owes to the steps, as checks that can be run against any implementation: the real ones, and the
// faulty one that proves that the checks can fail. Every wait is bounded by the check's own deadline.

import { type EnforcedLimit, enforcedLimits } from "@holdfast/contracts/execution/limits";
import { uuidv7 } from "@holdfast/kit/uuid";
import { expect } from "vitest";
import { allCommands, type ContractCheck, ended, run, running, start, uniqueSleep, until } from "./bench.ts";
import { isolationContract } from "./contract-isolation.ts";
import { limitContract } from "./contract-limits.ts";

/** Prints the secret of a run, however the backend provides it. */
const SHOW_SECRET =
  'if [ -n "$HOLDFAST_EXECUTION_SECRET_FILE" ]; then cat "$HOLDFAST_EXECUTION_SECRET_FILE"; else printf %s "$HOLDFAST_EXECUTION_SECRET"; fi';

const commonContract: ContractCheck[] = [
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
      expect((await run(bench, { script: "kill -TERM $$; sleep 5" })).exitCode).toBe(143);
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
        const { stdout } = await run(bench, { script: "env", env: { GIVEN: "a b=c" } });
        expect(stdout.split("\n")).toContain("GIVEN=a b=c");
        expect(stdout).not.toContain("leaked");
      } finally {
        delete process.env["HOLDFAST_CONTRACT_LEAK"];
      }
    },
  },
  {
    name: "the secret reaches the script unchanged, and a run without one has none",
    async check(bench) {
      const secret = 'line one\n"two" $HOME ü \\ ';
      expect((await run(bench, { script: SHOW_SECRET, secret })).stdout).toBe(secret);
      expect((await run(bench, { script: `${SHOW_SECRET}; env | grep -c SECRET` })).stdout).toBe("0\n");
    },
  },
  {
    name: "script, secret and environment are in no arguments of any process of the host",
    async check(bench) {
      const [secret, value, sleep] = [`hidden-${uuidv7()}`, `value-${uuidv7()}`, uniqueSleep()];
      const script = `secretly=${secret}-script; ${sleep}`;
      const { handle } = start(bench, { script, secret, env: { VALUE: value } });
      await until(bench, () => running(sleep).length > 0, "the script");
      const lines = allCommands().map(([, line]) => line);
      handle.kill();
      await ended(bench, handle);
      expect(lines.filter((line) => line.includes(secret) || line.includes(value))).toEqual([]);
    },
  },
  {
    name: "a script has a directory of its own, empty and writable, and it is gone afterwards",
    async check(bench) {
      const script = "ls -A; mkdir -p a/b; echo kept > a/b/c; cat a/b/c; chmod 000 a/b; chmod 000 a; ln -s / out";
      for (const round of [1, 2]) {
        const { stdout } = await run(bench, { script });
        expect([round, stdout]).toEqual([round, "kept\n"]);
        expect([round, await bench.leftovers()]).toEqual([round, []]);
      }
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
      const sleep = uniqueSleep();
      const script = `${sleep} & setsid ${sleep} & (env -i ${sleep} &) ; wait`;
      const { handle } = start(bench, { script });
      await until(bench, () => running(sleep).length === 3, "the processes");
      handle.kill();
      const { exitCode } = await ended(bench, handle);
      expect([exitCode, running(sleep), await bench.leftovers()]).toEqual([null, [], []]);
    },
  },
  {
    name: "what a script leaves running when it ends is ended with it",
    async check(bench) {
      const sleep = uniqueSleep();
      const count = `grep -lz "^${sleep.split(" ")[1]}$" /proc/[0-9]*/cmdline 2>/dev/null | wc -l`;
      const script = `setsid ${sleep} & nohup ${sleep} & until [ $(${count}) -ge 2 ]; do sleep 0.05; done; echo started`;
      const { exitCode, stdout } = await run(bench, { script });
      expect([exitCode, stdout, running(sleep)]).toEqual([0, "started\n", []]);
    },
  },
  {
    name: "a run that is killed before it has begun ends, and leaves nothing",
    async check(bench) {
      const { handle } = start(bench, { script: "sleep 1000" });
      handle.kill();
      expect((await ended(bench, handle)).exitCode).toBeNull();
      expect(await bench.leftovers()).toEqual([]);
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
    name: "what cannot be started is reported in words, and leaves nothing",
    async check(bench) {
      const { handle } = start(bench, { shell: "no-such-shell" as "sh", script: "true" });
      await expect(ended(bench, handle)).rejects.toThrow(/no-such-shell|not be started/);
      expect(await bench.leftovers()).toEqual([]);
    },
  },
  {
    name: "runs at the same time do not disturb each other",
    async check(bench) {
      const numbers = [1, 2, 3, 4];
      const script = "echo $NUMBER > mine; sleep 0.2; cat mine; exit $NUMBER";
      const runs = numbers.map((number) => run(bench, { script, env: { NUMBER: String(number) } }));
      const ends = await Promise.all(runs);
      expect(ends.map(({ exitCode, stdout }) => [exitCode, stdout])).toEqual(numbers.map((n) => [n, `${n}\n`]));
    },
  },
  {
    name: "nothing is left to recover after runs that ended",
    async check(bench) {
      await run(bench, { script: "true" });
      expect(await bench.driver.recover()).toBe(0);
      expect(await bench.leftovers()).toEqual([]);
    },
  },
  {
    name: "the check says that the backend works, and of each limit what enforces it or what to change",
    async check(bench) {
      const { backend, problem, limits } = await bench.driver.check();
      expect([backend, problem]).toEqual([bench.driver.name, undefined]);
      expect(Object.keys(limits).sort()).toEqual([...enforcedLimits].sort());
      for (const limit of Object.values(limits)) {
        expect(limit.enforced ? limit.by : `${limit.what}${limit.remedy}`).toMatch(/\w{3}/);
      }
      expect(await bench.leftovers()).toEqual([]);
    },
  },
];

export const sandboxContract: readonly ContractCheck[] = [
  ...commonContract,
  ...isolationContract,
  ...limitContract,
];

/** The checks for a driver with this isolation, and these limits on the host of the test. */
export function contractOf(provided: { isolation: boolean; limits: readonly EnforcedLimit[] }): ContractCheck[] {
  return sandboxContract.filter(({ needs }) => {
    if (needs === undefined) return true;
    return needs === "isolation" ? provided.isolation : provided.limits.includes(needs);
  });
}
