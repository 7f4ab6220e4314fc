// The first process of a run's own world: makes what all labs share, runs the scenarios side by side, reports.
// Its files are in memory, on a file system that nobody else sees.

import { rmSync } from "node:fs";
import { join } from "node:path";
import { openSharedDatabase } from "./lab/database.ts";
import type { Place } from "./lab/lab.ts";
import { openReport } from "./report.ts";
import { runScenario } from "./run-scenario.ts";
import type { Run } from "./scenario.ts";
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
const waiting = chosen.map((run, index) => ({ run, number: index + 1 }));
/** What fails beside many others is judged by a second run, alone: many labs keep two cores busy. */
const doubtful: { run: Run; number: number; problems: string[] }[] = [];
const work = async () => {
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const { run, number } = next;
    report.began(run);
    const result = await runScenario(run, { place, number, keepIn });
    if (result.ok || run.falsify || chosen.length === 1) report.ended(run, result);
    else doubtful.push({ run, number: number + chosen.length, problems: result.problems });
  }
};
await Promise.all(Array.from({ length: Number(jobs) }, work));
for (const { run, number, problems } of doubtful) {
  const result = await runScenario(run, { place, number, keepIn });
  const note = `failed beside others: ${problems.join("; ")}`;
  report.ended(run, { ...result, notes: [...result.notes, note] });
}
await place.database.stop();
const code = report.close() ? 0 : 1;
// A report is larger than a pipe's buffer: the process ends when all of it is written.
process.stdout.write("", () => process.exit(code));
