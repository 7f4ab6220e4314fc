// npm run matrix [-- <row>…] [--pairs [<row>+<row>…]] [--json] [--jobs <n>]: makes each fault of the failure matrix for real, with
// default limits, and compares what the product says with what the matrix expects. Exit code 1 when a row differs.

import { parseArgs } from "node:util";
import { facilities } from "../../../scripts/facilities.mjs";
import { runInside } from "../enter.ts";
import { pairs as allPairs, nameOf } from "./pairs.ts";
import { allRows } from "./rows/all.ts";

const usage = "npm run matrix -- [<row>…] [--pairs [<row>+<row>…]] [--json] [--jobs <how many at a time>]";
const JOBS = 6;

const asked = readArguments(process.argv.slice(2));
const missing = (["root", "nft", "dnsmasq", "faketime", "nginx", "postgresql"] as const).filter(
  (name) => !facilities[name].present(),
);
if (typeof asked === "string") stop(asked);
else if (missing.length > 0) {
  stop(`The lab needs ${missing.join(", ")}: ${missing.map((name) => facilities[name].remedy).join("; ")}.`);
} else {
  const inside = new URL("./inside.ts", import.meta.url);
  const args = [
    asked.names.join(","),
    String(asked.jobs),
    asked.json ? "json" : "table",
    asked.pairs ? "pairs" : "rows",
  ];
  process.exitCode = await runInside(inside, args);
}

/** Or what is wrong with them. */
function readArguments(args: string[]): { names: string[]; pairs: boolean; json: boolean; jobs: number } | string {
  try {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        json: { type: "boolean", default: false },
        pairs: { type: "boolean", default: false },
        jobs: { type: "string", default: String(JOBS) },
      },
    });
    const { pairs, json } = values;
    const known = pairs ? allPairs.map(nameOf) : allRows.map(({ row }) => row);
    const unknown = positionals.filter((name) => !known.includes(name));
    if (unknown.length > 0) {
      const kind = pairs ? "pair" : "row";
      return `There is no ${kind} ${unknown.join(", ")}; there are: ${known.toSorted().join(", ")}.`;
    }
    const jobs = Number(values.jobs);
    if (!Number.isInteger(jobs) || jobs < 1) return `--jobs is ${values.jobs}; it takes 1 or more.`;
    return { names: positionals.length > 0 ? positionals : known, pairs, json, jobs };
  } catch (error) {
    return `${(error as Error).message}\n${usage}`;
  }
}

function stop(message: string): void {
  process.stderr.write(`${message}\n`);
  process.exitCode = 2;
}
