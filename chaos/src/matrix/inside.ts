// The first process of a run of the matrix: rows side by side, those about terminals one after the other in one
// installation, and a report.

import { rmSync } from "node:fs";
import { join } from "node:path";
import { debianPostgres } from "../../../scripts/facilities.mjs";
import { openSharedDatabase } from "../lab/database.ts";
import type { Site } from "../lab/lab.ts";
import { enterWorld, repository, withOwnUsers } from "../world.ts";
import { type KeyRow, readAnswerKey, withAction } from "./answer-key.ts";
import { openInstallation } from "./installation.ts";
import { nameOf, pairs, rowsOf } from "./pairs.ts";
import { openMatrixReport } from "./report.ts";
import type { Row, RowAt } from "./row.ts";
import { allRows } from "./rows/all.ts";
import { runAtInstallation, runInLab, runPair } from "./run-row.ts";

const keepIn = join(repository, "test-output/matrix");
const [names = "", jobs = "4", form = "table", wanted = "rows"] = process.argv.slice(2);
const all = readAnswerKey();
const isChosen = (name: string) => names.split(",").includes(name);
const chosen = wanted === "rows" ? allRows.filter(({ row }) => isChosen(row)) : [];
const chosenPairs = wanted === "pairs" ? pairs.filter((pair) => isChosen(nameOf(pair))) : [];
const directory = enterWorld();
withOwnUsers(directory);
for (const { row } of chosen) rmSync(join(keepIn, row), { recursive: true, force: true });

const report = openMatrixReport(all, form === "json" ? "json" : "table");
const database = await openSharedDatabase(join(directory, "postgres"), debianPostgres());
const site: Site = { directory, database, falsify: false, link: "stream" };

const labRows = chosen.filter((one) => one.at === "lab" || one.at === "database");
type Job = (number: number) => Promise<void>;
const jobsOfRows = labRows.map(
  (row): Job =>
    async (number) => {
      report.ended(await runInLab(row, keyOf(row), { all, site, number, keepIn }));
    },
);
const jobsOfPairs = chosenPairs.map(
  (names): Job =>
    async (number) => {
      const keys = rowsOf(names).map(keyOf);
      report.pairEnded(await runPair(names, keys, { site, number, keepIn }));
    },
);
const waiting = [...jobsOfRows, ...jobsOfPairs].map((job, index) => () => job(index + 1));
const inLabs = async () => {
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await next();
};
const atInstallation = async (rows: readonly RowAt<"installation">[]) => {
  if (rows.length === 0) return;
  const place = await openInstallation();
  await place.repair();
  for (const row of rows) report.ended(await runAtInstallation(row, keyOf(row), { all, place }));
  await place.close();
};
await Promise.all([
  ...Array.from({ length: Number(jobs) }, inLabs),
  atInstallation(chosen.filter((one) => one.at === "installation")),
]);
await database.stop();
const code = report.close() ? 0 : 1;
process.stdout.write("", () => process.exit(code));

function keyOf({ row, nextAction }: Row): KeyRow {
  const found = all.find((one) => one.row === row);
  if (!found) throw new Error(`the matrix has no row ${row}`);
  return withAction(found, nextAction);
}
