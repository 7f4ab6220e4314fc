// The first process of a run's own world: makes what all labs share, runs the scenarios side by side, reports.
// Its files are in memory, on a file system that nobody else sees.

import { rmSync } from "node:fs";
import { join } from "node:path";
import { openSharedDatabase } from "./lab/database.ts";
import type { Site } from "./lab/lab.ts";
import { openReport } from "./report.ts";
import { runScenario } from "./run-scenario.ts";
import type { Scenario } from "./scenario.ts";
import { allScenarios } from "./scenarios/all.ts";
import { enterWorld, repository } from "./world.ts";

/** Where logs of failed scenarios go, out of this world. */
const keepIn = join(repository, "test-output/chaos");
const [names = "", jobs = "4", form = "table", truth = "true", link = "stream"] = process.argv.slice(2);
const chosen = names.split(",").map(scenarioOf);

const directory = enterWorld();
for (const { name } of chosen) rmSync(join(keepIn, name), { recursive: true, force: true });

const report = openReport(chosen, form === "json" ? "json" : "table");
const database = await openSharedDatabase(join(directory, "postgres"));
const site: Site = {
  ...{ directory, database, falsify: truth === "falsified" },
  link: link === "poll" ? "poll" : "stream",
};
const waiting = chosen.map((scenario, index) => ({ scenario, number: index + 1 }));
const work = async () => {
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    report.began(next.scenario);
    report.ended(await runScenario(next.scenario, { site, number: next.number, keepIn }));
  }
};
await Promise.all(Array.from({ length: Number(jobs) }, work));
await site.database.stop();
const code = report.close() ? 0 : 1;
// A report is larger than a pipe's buffer: the process ends when all of it is written.
process.stdout.write("", () => process.exit(code));

function scenarioOf(name: string): Scenario {
  const found = allScenarios.find((one) => one.name === name);
  if (!found) throw new Error(`there is no scenario ${name}`);
  return found;
}
