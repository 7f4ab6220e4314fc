// The first process of a run's own world: makes what all labs share, runs the scenarios side by side, reports.
// Its files are in memory, on a file system that nobody else sees.

import { rmSync } from "node:fs";
import { join } from "node:path";
import { openSharedDatabase } from "./lab/database.ts";
import type { Place } from "./lab/lab.ts";
import { openReport } from "./report.ts";
import { runScenario } from "./run-scenario.ts";
import { groupsOf, runDrills } from "./runbook/run-drills.ts";
import { isDrill, type Run, type RunOf, type Scenario, type ScenarioResult } from "./scenario.ts";
import { readRun } from "./scenarios/all.ts";
import { enterWorld, repository } from "./world.ts";

/** Where logs of failed scenarios go, out of this world. */
const keepIn = join(repository, "test-output/chaos");
const [labels = "", jobs = "4", form = "table"] = process.argv.slice(2);
const chosen = labels.split(",").map(readRun);

const directory = enterWorld();
for (const label of labels.split(",")) {
  rmSync(join(keepIn, label.replaceAll(":", "-")), { recursive: true, force: true });
}

const report = openReport(chosen, form === "json" ? "json" : "table");
const place: Place = { directory, database: await openSharedDatabase(join(directory, "postgres")) };
/** Each with a lab of its own. */
const jobsOfRun = [
  ...groupsOf(chosen.filter(isDrill)),
  ...chosen.filter((run) => !isDrill(run)).map((run) => [run as RunOf<Scenario>]),
];
const waiting = [...jobsOfRun];
/** What fails beside many others is judged by a second run, alone: many labs keep two cores busy. */
const doubtful: { run: Run; problems: string[] }[] = [];
let numbers = 0;
const newNumber = () => {
  numbers += 1;
  return numbers;
};
const begin = (runs: readonly Run[], onEnd: (run: Run, result: ScenarioResult) => void) => {
  const [first] = runs;
  if (first && !isDrill(first)) {
    report.began(first);
    const options = { place, number: newNumber(), keepIn };
    return runScenario(first as RunOf<Scenario>, options).then((result) => onEnd(first, result));
  }
  return runDrills(runs.filter(isDrill), { place, newNumber, keepIn, onBegin: report.began, onEnd });
};
const work = async () => {
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    await begin(next, (run, result) => {
      if (result.ok || run.falsify || chosen.length === 1) report.ended(run, result);
      else doubtful.push({ run, problems: result.problems });
    });
  }
};
await Promise.all(Array.from({ length: Number(jobs) }, work));
for (const { run, problems } of doubtful) {
  const note = `failed beside others: ${problems.join("; ")}`;
  await begin([run], (_, result) => report.ended(run, { ...result, notes: [...result.notes, note] }));
}
await place.database.stop();
const code = report.close() ? 0 : 1;
// A report is larger than a pipe's buffer: the process ends when all of it is written.
process.stdout.write("", () => process.exit(code));
