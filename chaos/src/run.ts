// npm run chaos -- list | run <name>… | all [--json] [--jobs <n>] [--link poll] [--falsify]: breaks one thing at a time between real
// processes on hosts made of namespaces, and checks that the product says which. Exit code 1 when it did not.

import { parseArgs } from "node:util";
import { facilities } from "../../scripts/facilities.mjs";
import { runInside } from "./enter.ts";
import type { Link } from "./lab/lab.ts";
import { allScenarios } from "./scenarios/all.ts";

const usage =
  "npm run chaos -- list | run <name>… | all   [--json] [--jobs <how many at a time>] [--link stream|poll] [--falsify]";
/** More at a time than there are cores: most of a scenario is waiting. */
const JOBS = 6;

type Asked = { do: "list" | "run"; names: string[]; json: boolean; jobs: number; link: Link; falsify: boolean };

const asked = readArguments(process.argv.slice(2));
if (typeof asked === "string") {
  process.stderr.write(`${asked}\n`);
  process.exit(2);
}
if (asked.do === "list") list(asked.json);
else await run(asked);

async function run({ names, json, jobs, link, falsify }: Asked): Promise<void> {
  const missing = (["root", "nft", "dnsmasq", "faketime"] as const).filter((name) => !facilities[name].present());
  if (missing.length > 0) {
    const remedies = missing.map((name) => facilities[name].remedy);
    process.stderr.write(`The lab needs ${missing.join(", ")}: ${remedies.join("; ")}.\n`);
    process.exit(2);
  }
  const truth = falsify ? "falsified" : "true";
  const inside = new URL("./inside.ts", import.meta.url);
  process.exitCode = await runInside(inside, [
    names.join(","),
    String(jobs),
    json ? "json" : "table",
    truth,
    link,
  ]);
}

function list(json: boolean): void {
  const scenarios = allScenarios.map(({ name, title, expect }) => ({ name, title, expect }));
  const text = json
    ? JSON.stringify({ scenarios }, null, 2)
    : scenarios.map(({ name, title }) => `${name.padEnd(22)}${title}`).join("\n");
  process.stdout.write(`${text}\n`);
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
    const known = allScenarios.map(({ name }) => name);
    const jobs = Number(values.jobs);
    if (!Number.isInteger(jobs) || jobs < 1) return `--jobs is ${values.jobs}; it takes 1 or more.`;
    const { link } = values;
    if (link !== "stream" && link !== "poll") return `--link is ${link}; it takes stream or poll.`;
    const options: Omit<Asked, "do" | "names"> = { json: values.json, jobs, link, falsify: values.falsify };
    if (verb === "list" && names.length === 0) return { do: "list", names: [], ...options };
    if (verb === "all" && names.length === 0) return { do: "run", names: known, ...options };
    if (verb !== "run" || names.length === 0) return usage;
    const unknown = names.filter((name) => !known.includes(name));
    if (unknown.length > 0) return `There is no scenario ${unknown.join(", ")}; there are: ${known.join(", ")}.`;
    return { do: "run", names: [...new Set(names)], ...options };
  } catch (error) {
    return `${(error as Error).message}\n${usage}`;
  }
}
