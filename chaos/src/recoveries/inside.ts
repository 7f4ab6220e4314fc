// The first process of a run of recoveries: the stages side by side, and a report.

import { rmSync } from "node:fs";
import { join } from "node:path";
import { debianPostgres } from "../../../scripts/facilities.mjs";
import { openSharedDatabase } from "../lab/database.ts";
import type { Site } from "../lab/lab.ts";
import { enterWorld, repository } from "../world.ts";
import { stages } from "./all.ts";
import type { RecoveryResult } from "./recovery.ts";
import { runStage } from "./run-stage.ts";

const keepIn = join(repository, "test-output/recoveries");
const [names = "", form = "table"] = process.argv.slice(2);
const wanted = new Set(names.split(","));
const directory = enterWorld();
rmSync(keepIn, { recursive: true, force: true });

const started = performance.now();
const results: RecoveryResult[] = [];
const database = await openSharedDatabase(join(directory, "postgres"), debianPostgres());
const site: Site = { directory, database, falsify: false, link: "stream" };
const ended = (result: RecoveryResult) => {
  results.push(result);
  if (form === "table") process.stdout.write(`${lineOf(result)}\n`);
};
/** What fails beside many others is judged by a second run, alone: many labs keep two cores busy. */
const doubtful = new Map<string, RecoveryResult>();
const first = (result: RecoveryResult) => {
  if (result.ok || wanted.size === 1) ended(result);
  else doubtful.set(result.name, result);
};
await Promise.all(
  stages.map((stage, index) => runStage(stage, { site, number: index + 1, wanted, keepIn, ended: first })),
);
const again = (result: RecoveryResult) => {
  const note = `failed beside others: ${doubtful.get(result.name)?.problems.join("; ")}`;
  ended({ ...result, notes: [...result.notes, note] });
};
for (const [index, stage] of stages.entries()) {
  const number = stages.length + index + 1;
  await runStage(stage, { site, number, wanted: new Set(doubtful.keys()), keepIn, ended: again });
}
await database.stop();
const seconds = Math.round((performance.now() - started) / 100) / 10;
const bad = results.filter(({ ok }) => !ok);
const isWell = bad.length === 0 && results.length === wanted.size;
if (form === "json")
  process.stdout.write(`${JSON.stringify({ ok: isWell, seconds, recoveries: results }, null, 2)}\n`);
else {
  for (const { name, problems, logs } of bad) {
    process.stdout.write(`\n${name}:\n  ${problems.join("\n  ")}\n  logs: ${logs}\n`);
  }
  process.stdout.write(`\n${results.length - bad.length} of ${wanted.size} recovered, in ${seconds} s\n`);
}
process.stdout.write("", () => process.exit(isWell ? 0 : 1));

function lineOf({ ok, name, reasons, seconds: took, incident_id, notes }: RecoveryResult): string {
  const cells = [ok ? "✓" : "✗", name.padEnd(22), reasons.join(", ").padEnd(34)];
  const time = took === null ? "–" : `${took.toFixed(1)} s`;
  return [...cells, time.padStart(8), incident_id ?? "–", ...notes].join("  ");
}
