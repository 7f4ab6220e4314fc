// npm run torture [-- [tasks|executions|workflows|gateways|terminals|typing] [rounds [seed]]]: kills supervisor, api and postmaster by turns
// while clients write; with `tasks`, api, agent, postmaster and worker while tasks run and connections break; with
// `executions`, the gateway too, while steps run on an agent; with `workflows`, after events of runs with steps in worker and agent;
// with `gateways`, restarts two of them and loses their Redis
// under as many steps and as many shells; with `terminals`, opens as many and drops each abruptly; with `typing`, types into
// terminals while agent and gateway are stopped, killed and cut off. By default 200 rounds, 100 steps and shells, 1000
// terminals, or 20 rounds of typing. Exit code 1 when something was lost, done twice or left behind.

import { tortureExecutions } from "../cli/test/torture/executions.ts";
import { openRollingPair, rollGateways } from "../cli/test/torture/gateways.ts";
import { tortureTasks } from "../cli/test/torture/tasks.ts";
import { tortureTerminals } from "../cli/test/torture/terminals.ts";
import { type TortureReport, torture } from "../cli/test/torture/torture.ts";
import { openTypingPlace, tortureTyping } from "../cli/test/torture/typing.ts";
import { tortureWorkflows } from "../cli/test/torture/workflows.ts";

const args = process.argv.slice(2);
const usually: Record<string, number> = {
  tasks: 200,
  executions: 200,
  workflows: 200,
  gateways: 100,
  terminals: 1000,
  typing: 20,
};
const what = Object.keys(usually).find((name) => name === args[0]);
const usual = usually[what ?? "tasks"];
const [rounds = usual ?? 200, seed = Math.floor(Math.random() * 2 ** 31)] = args.slice(what ? 1 : 0).map(Number);
if (!Number.isInteger(rounds) || rounds < 1 || !Number.isInteger(seed)) {
  process.stderr.write(
    "usage: npm run torture -- [tasks|executions|workflows|gateways|terminals|typing] [rounds [seed]], two whole numbers\n",
  );
  process.exit(2);
}

const print = (text: string) => process.stdout.write(`${text}\n`);
print(`${rounds} rounds with seed ${seed}`);
const started = Date.now();
if (what === "tasks") {
  const report = await tortureTasks({ kills: rounds, seed, onKill: print });
  print(JSON.stringify(report, null, 2));
  const { missing, changed, repeated, untraced } = report;
  process.exitCode = missing.length + changed.length + repeated.length + untraced.length > 0 ? 1 : 0;
} else if (what === "executions") {
  const report = await tortureExecutions({ kills: rounds, seed, onKill: print });
  print(JSON.stringify(report, null, 2));
  // Outages are shorter than deadlines: only a step that ran on an agent when that was killed may fail.
  const { succeeded: _, NODE_EXECUTION_FAILED: __, ...others } = report.ended;
  const { changed, repeated, untraced } = report;
  const wrong = [...changed, ...repeated, ...untraced, ...Object.keys(others)];
  process.exitCode = wrong.length > 0 ? 1 : 0;
} else if (what === "workflows") {
  const report = await tortureWorkflows({ kills: rounds, seed, onKill: print });
  print(JSON.stringify(report, null, 2));
  print(`${Math.round((Date.now() - started) / 1000)} s`);
  // Only what ran when its own process was killed may fail.
  const { succeeded: _, outcome_unknown: __, NODE_EXECUTION_FAILED: ___, ...others } = report.ended;
  const { notOnce, repeated, untraced, different } = report;
  const wrong = [...notOnce, ...repeated, ...untraced, ...different, ...Object.keys(others)];
  process.exitCode = wrong.length > 0 ? 1 : 0;
} else if (what === "gateways") {
  const pair = await openRollingPair(rounds);
  const report = await rollGateways(pair, { count: rounds, onEvent: print }).finally(pair.cleanUp);
  print(JSON.stringify(report, null, 2));
  process.exitCode = report.lost.length + report.notOnce.length + report.interrupted.length > 0 ? 1 : 0;
} else if (what === "terminals") {
  const report = await tortureTerminals({ terminals: rounds, seed, onWave: print });
  print(JSON.stringify(report, null, 2));
  print(`${Math.round((Date.now() - started) / 1000)} s`);
  const left = Object.values(report.left).reduce((sum, count) => sum + count);
  process.exitCode = left + report.refused.length + report.grew.length > 0 ? 1 : 0;
} else if (what === "typing") {
  const place = await openTypingPlace();
  const report = await tortureTyping(place, { rounds, seed, onRound: print }).finally(place.close);
  print(JSON.stringify(report, null, 2));
  process.exitCode = report.wrong.length > 0 ? 1 : 0;
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
