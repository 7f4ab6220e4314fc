// npm run torture [-- [tasks] [rounds [seed]]]: kills supervisor, api and postmaster by turns while
// clients write; with `tasks`, api, agent, postmaster and worker while tasks run and connections break.
// 200 rounds unless told otherwise. Exit code 1 when something was lost or done twice.

import { tortureTasks } from "../cli/test/torture/tasks.ts";
import { type TortureReport, torture } from "../cli/test/torture/torture.ts";

const args = process.argv.slice(2);
const ofTasks = args[0] === "tasks";
const [rounds = 200, seed = Math.floor(Math.random() * 2 ** 31)] = args.slice(ofTasks ? 1 : 0).map(Number);
if (!Number.isInteger(rounds) || rounds < 1 || !Number.isInteger(seed)) {
  process.stderr.write("usage: npm run torture -- [tasks] [rounds [seed]], two whole numbers\n");
  process.exit(2);
}

const print = (text: string) => process.stdout.write(`${text}\n`);
print(`${rounds} rounds with seed ${seed}`);
const started = Date.now();
if (ofTasks) {
  const report = await tortureTasks({ kills: rounds, seed, onKill: print });
  print(JSON.stringify(report, null, 2));
  const { missing, changed, repeated, untraced } = report;
  process.exitCode = missing.length + changed.length + repeated.length + untraced.length > 0 ? 1 : 0;
} else {
  const report = await torture({ rounds, seed, onRound: print });
  for (const line of describe(report, Date.now() - started)) print(line);
  process.exitCode = report.lost.length + report.doubled + report.refusals.length > 0 ? 1 : 0;
}

function describe(result: TortureReport, ms: number): string[] {
  return [
    "",
    `${result.rounds} kills in ${Math.round(ms / 1000)} s: ${result.acknowledged} rows acknowledged, ` +
      `${result.repeated} requests repeated, ${result.lost.length} rows lost, ${result.doubled} doubled`,
    ...Object.entries(result.recoveries).map(([victim, times]) => `  ${victim}: ${spread(times)}`),
    ...result.refusals.map((refusal) => `  refused: ${refusal}`),
    ...result.lost.slice(0, 20).map((slug) => `  lost: ${slug}`),
    `seed ${result.seed}`,
  ];
}

function spread(times: number[]): string {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
  return `writing again after ${at(0.5)} ms (median), ${at(1)} ms (longest)`;
}
