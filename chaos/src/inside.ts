// The first process of a run's own world: makes what all labs share, runs the scenarios side by side, reports.
// Its files are in memory, on a file system that nobody else sees.

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openSharedDatabase } from "./lab/database.ts";
import type { Site } from "./lab/lab.ts";
import { openReport } from "./report.ts";
import { runScenario } from "./run-scenario.ts";
import type { Scenario } from "./scenario.ts";
import { allScenarios } from "./scenarios/all.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
/** Where logs of failed scenarios go, out of this world. */
const keepIn = join(root, "test-output/chaos");
/** Any directory that everybody has and the project is not in: it is hidden in here. */
const mountPoint = ["/mnt", "/srv", "/media", "/opt"].find((path) => existsSync(path) && !root.startsWith(path));

const [names = "", jobs = "4", form = "table", truth = "true", link = "stream"] = process.argv.slice(2);
const chosen = names.split(",").map(scenarioOf);

// Whoever started us is gone, or wants us to stop. Everything in here ends with this process.
new Socket({ fd: 3 })
  .on("data", () => process.exit(130))
  .on("close", () => process.exit(130))
  .on("error", () => process.exit(130));

if (mountPoint === undefined) throw new Error("there is no directory to work in: make /mnt");
execFileSync("mount", ["-t", "tmpfs", "-o", "mode=711", "tmpfs", mountPoint]);
mkdirSync(join(mountPoint, "tmp"), { mode: 0o1777 });
process.env["TMPDIR"] = join(mountPoint, "tmp");
execFileSync("ip", ["link", "set", "lo", "up"]);
for (const { name } of chosen) rmSync(join(keepIn, name), { recursive: true, force: true });

const report = openReport(chosen, form === "json" ? "json" : "table");
const database = await openSharedDatabase(join(mountPoint, "postgres"));
const site: Site = {
  ...{ directory: mountPoint, database, falsify: truth === "falsified" },
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
