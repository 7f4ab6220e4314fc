// npm run bench -- <name> [--json] [--passes N] [--beside CHECKOUT] [--agents N] [--minutes N] [--vms N]: measures us beside a peer,
// in turns. The figures go to stdout, everything else to stderr. Without a name it lists what there is.

import { parseArgs } from "node:util";
import type { Bench, BenchOptions } from "./bench.ts";
import { allBenches } from "./benches/all.ts";
import { besideCheckout } from "./beside.ts";
import { runPasses } from "./contest.ts";
import { openLab } from "./lab.ts";
import { describeMachine } from "./machine.ts";
import { makeReport, type Report, tableOf } from "./report.ts";

const exitCode = { failed: 1, usage: 2, interrupted: 130 } as const;

const say = (line: string) => void process.stderr.write(`${line}\n`);
const print = (line: string) => void process.stdout.write(`${line}\n`);

process.exitCode = await main(process.argv.slice(2));

async function main(args: string[]): Promise<number> {
  const asked = readArguments(args);
  if (typeof asked === "string") {
    say(asked);
    return exitCode.usage;
  }
  if (asked.bench === undefined) {
    for (const { name, summary } of allBenches) print(`${name.padEnd(10)} ${summary}`);
    return 0;
  }
  try {
    const report = await measure(asked.bench, asked);
    if (asked.json) print(JSON.stringify(report));
    else for (const line of tableOf(report)) print(line);
    return 0;
  } catch (error) {
    say(`${asked.bench.name} could not be measured: ${(error as Error).message}`);
    return exitCode.failed;
  }
}

async function measure(bench: Bench, { passes, options }: Pick<Asked, "passes" | "options">): Promise<Report> {
  const lab = openLab();
  let interrupted = false;
  const interrupt = () => {
    if (!interrupted) say("interrupted: stopping what was started");
    interrupted = true;
    void lab.close().finally(() => process.exit(exitCode.interrupted));
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, interrupt);
  try {
    const contest = await bench.prepare(lab, options);
    const measured = await runPasses(contest, {
      passes,
      onMeasured: (pass, side, values) => {
        const figures = bench.figures
          .filter(({ name }) => values[name] !== undefined)
          .map(({ name, unit }) => `${name} ${values[name]?.toFixed(2)} ${unit}`);
        say(`${pass.padEnd(11)} ${side.padEnd(6)} ${figures.join(", ")}`);
      },
    });
    for (const note of contest.notes?.() ?? []) say(note);
    return makeReport({ bench, machine: describeMachine(), passes: measured, absent: contest.absent });
  } catch (error) {
    // What an interrupted pass complains about is no news; the process exits when the lab is closed.
    if (interrupted) await new Promise(() => undefined);
    throw error;
  } finally {
    await lab.close();
  }
}

type Asked = { bench: Bench | undefined; json: boolean; passes: number; options: BenchOptions };

/** Or what is wrong with them. */
function readArguments(args: string[]): Asked | string {
  try {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        json: { type: "boolean", default: false },
        passes: { type: "string" },
        beside: { type: "string" },
        agents: { type: "string" },
        minutes: { type: "string" },
        vms: { type: "string" },
      },
    });
    const [name, surplus] = positionals;
    const bench = allBenches.find((one) => one.name === name);
    const known = allBenches.map((one) => one.name).join(", ");
    if (surplus !== undefined) return `One bench at a time; there are: ${known}.`;
    if (name !== undefined && bench === undefined) return `There is no bench ${name}; there are: ${known}.`;
    const passes = Number(values.passes ?? bench?.passes ?? 1);
    if (!Number.isInteger(passes) || passes < 1) return `--passes is ${values.passes}; it takes 1 or more.`;
    const options: BenchOptions = {};
    for (const name of ["agents", "minutes", "vms"] as const) {
      if (values[name] === undefined) continue;
      if (!bench?.takes?.includes(name)) return `${bench?.name ?? "The list of benches"} takes no --${name}.`;
      const value = Number(values[name]);
      if (!Number.isInteger(value) || value < 1) return `--${name} is ${values[name]}; it takes 1 or more.`;
      options[name] = value;
    }
    const { json, beside } = values;
    return { bench: bench && beside !== undefined ? besideCheckout(bench, beside) : bench, json, passes, options };
  } catch (error) {
    return (error as Error).message;
  }
}
