// npm run chaos -- recoveries … | list | run <name>… | all [<name>…] [--json] [--jobs <n>] [--link poll] [--falsify]: breaks one thing at a time between real
// processes on hosts made of namespaces, and checks that the product says which. Exit code 1 when it did not.

import { parseArgs } from "node:util";
import { facilities } from "../../scripts/facilities.mjs";
import { runInside } from "./enter.ts";
import { runRecoveries } from "./recoveries/run.ts";
import type { RowOfDrill } from "./runbook/drill.ts";
import { labelOf, linksOf, type Run } from "./scenario.ts";
import { everything, readRun } from "./scenarios/all.ts";

const usage =
  "npm run chaos -- list | run <name>… | all [<name>…]   [--json] [--jobs <how many at a time>] [--link stream|poll] [--falsify]\nnpm run chaos -- recoveries [list | <name>…] [--json]";
/** More at a time than there are cores: most of a scenario is waiting. */
const JOBS = 8;

/** In the list. */
const onlyPoll =
  " (agents poll, whatever --link says: the edge holds back single requests, and passes on no upgrades)";

type Asked = { do: "list" | "run"; runs: Run[]; json: boolean; jobs: number };

const [verb, ...rest] = process.argv.slice(2);
if (verb === "recoveries") process.exit(await runRecoveries(rest));
const asked = readArguments(process.argv.slice(2));
if (typeof asked === "string") {
  process.stderr.write(`${asked}\n`);
  process.exit(2);
}
if (asked.do === "list") list(asked.json);
else await run(asked);

async function run({ runs, json, jobs }: Asked): Promise<void> {
  const missing = (["root", "nft", "dnsmasq", "faketime", "sshd", "redis"] as const).filter(
    (name) => !facilities[name].present(),
  );
  if (missing.length > 0) {
    const remedies = missing.map((name) => facilities[name].remedy);
    process.stderr.write(`The lab needs ${missing.join(", ")}: ${remedies.join("; ")}.\n`);
    process.exit(2);
  }
  const inside = new URL("./inside.ts", import.meta.url);
  const labels = runs.map(labelOf).join(",");
  process.exitCode = await runInside(inside, [labels, String(jobs), json ? "json" : "table"]);
}

function list(json: boolean): void {
  const scenarios = everything.map((one) => ({
    ...{ name: one.name, title: one.title, expect: one.expect },
    rows: "rows" in one ? one.rows : [],
    links: linksOf(one),
  }));
  const rowsText = (rows: readonly RowOfDrill[]) => rows.map(({ row }) => row).join(" ");
  const text = json
    ? JSON.stringify({ scenarios }, null, 2)
    : scenarios
        .map(
          ({ name, title, rows, links }) =>
            `${name.padEnd(30)}${rowsText(rows).padEnd(10)}${title}${links.includes("stream") ? "" : onlyPoll}`,
        )
        .join("\n");
  process.stdout.write(`${text}\n`);
}

/** Each once, and those that take longest first. */
function inOrder(runs: readonly Run[]): Run[] {
  const once = [...new Map(runs.map((one) => [labelOf(one), one])).values()];
  return once.toSorted((a, b) => everything.indexOf(a.scenario) - everything.indexOf(b.scenario));
}

/** Or what is wrong with them. */
function readArguments(args: string[]): Asked | string {
  try {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        json: { type: "boolean", default: false },
        jobs: { type: "string", default: String(JOBS) },
        link: { type: "string", default: "stream" },
        falsify: { type: "boolean", default: false },
      },
    });
    const [verb, ...names] = positionals;
    const jobs = Number(values.jobs);
    if (!Number.isInteger(jobs) || jobs < 1) return `--jobs is ${values.jobs}; it takes 1 or more.`;
    const { link, json } = values;
    if (link !== "stream" && link !== "poll") return `--link is ${link}; it takes stream or poll.`;
    if (verb === "list" && names.length === 0) return { do: "list", runs: [], json, jobs };
    const all = verb === "all" ? everything.map(({ name }) => name) : [];
    const labels = [...all, ...names];
    if ((verb !== "run" && verb !== "all") || labels.length === 0) return usage;
    const runs = labels.map(readRun).map((one) => ({
      ...one,
      link: link === "poll" ? link : one.link,
      falsify: values.falsify || one.falsify,
    }));
    return { do: "run", runs: inOrder(runs), json, jobs };
  } catch (error) {
    return `${(error as Error).message}\n${usage}`;
  }
}
