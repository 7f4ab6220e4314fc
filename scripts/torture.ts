// npm run torture [-- [tasks|executions|terminals|typing] [rounds [seed]]]: kills supervisor, api and postmaster by turns
// while clients write; with `tasks`, api, agent, postmaster and worker while tasks run and connections break; with
// `executions`, the gateway too, while steps run on an agent; with `terminals`, opens as many and drops each abruptly; with
// `typing`, types into terminals while agent and gateway are stopped, killed and cut off. 200 rounds, 1000 terminals, or
// 20 rounds of typing, unless told otherwise. Exit code 1 when something was lost, done twice or left behind.

import { tortureExecutions } from "../cli/test/torture/executions.ts";
import { tortureTasks } from "../cli/test/torture/tasks.ts";
import { tortureTerminals } from "../cli/test/torture/terminals.ts";
import { type TortureReport, torture } from "../cli/test/torture/torture.ts";
import { openTypingPlace, tortureTyping } from "../cli/test/torture/typing.ts";

const args = process.argv.slice(2);
const what = ["tasks", "executions", "terminals", "typing"].find((name) => name === args[0]);
const usual = what === "terminals" ? 1000 : what === "typing" ? 20 : 200;
const [rounds = usual, seed = Math.floor(Math.random() * 2 ** 31)] = args.slice(what ? 1 : 0).map(Number);
if (!Number.isInteger(rounds) || rounds < 1 || !Number.isInteger(seed)) {
  process.stderr.write(
    "usage: npm run torture -- [tasks|executions|terminals|typing] [rounds [seed]], two whole numbers\n",
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
  process.exitCode = report.changed.length + report.repeated.length + report.untraced.length > 0 ? 1 : 0;
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
