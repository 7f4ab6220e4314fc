// holdfast workflow simulate FILE: which way a run would take, without doing anything.

import { UsageError } from "@holdfast/kit/settings";
import { openEvaluator } from "@holdfast/workflows/expressions/evaluator";
import type { RunEvent } from "@holdfast/workflows/run/events";
import { simulate } from "@holdfast/workflows/run/simulate";
import { type Command, Option } from "commander";
import { exitCodes } from "../../failure.ts";
import { printResult } from "../../output.ts";
import { readDocument } from "./file.ts";

type SimulateOptions = { input?: string; output?: string[]; fail?: string[]; json?: boolean };

const collect = (value: string, before: string[] = []) => [...before, value];

export function addSimulate(workflow: Command): void {
  workflow
    .command("simulate")
    .description("show which way a run would take; nothing is executed. Exits with 1 if the run would fail")
    .argument("<file>", "YAML or JSON; - for standard input")
    .option("--input <json>", "the input of the run")
    .addOption(new Option("--output <node=json>", "what a node returns; by default null").argParser(collect))
    .addOption(new Option("--fail <node>", "let every attempt of a node fail").argParser(collect))
    .option("--json", "print JSON")
    .action(async (file: string, options: SimulateOptions) => {
      const { document } = readDocument(file);
      const outputs = Object.fromEntries((options.output ?? []).map(readOutput));
      const failing = new Set(options.fail);
      const unknown = [...Object.keys(outputs), ...failing].find((id) => !Object.hasOwn(document.nodes, id));
      if (unknown !== undefined) throw new UsageError(`${file} has no node ${JSON.stringify(unknown)}.`);
      const input = options.input === undefined ? {} : parse("--input", options.input);
      const evaluator = openEvaluator();
      try {
        const given = { input, outputs, failing, now: new Date() };
        const { events, state } = await simulate(document, given, evaluator.evaluate);
        printResult(options, { status: state.status, events }, () => events.map(line).join("\n"));
        if (state.status !== "succeeded") process.exitCode = exitCodes.failed;
      } finally {
        await evaluator.close();
      }
    });
}

function readOutput(pair: string): [node: string, output: unknown] {
  const [, node, text] = /^([^=]+)=([\s\S]*)$/.exec(pair) ?? [];
  if (node === undefined || text === undefined) {
    throw new UsageError(`--output is ${JSON.stringify(pair)}; expected node=json, such as fetch={"status":200}.`);
  }
  return [node, parse("--output", text)];
}

function parse(option: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError(`${option} is ${JSON.stringify(text)}, which is not JSON.`);
  }
}

function line(event: RunEvent): string {
  const { type, ...rest } = event as RunEvent & { node?: string; attempt?: number };
  const { node, attempt, ...details } = rest;
  const where =
    node === undefined ? "" : ` ${node}${attempt !== undefined && attempt > 1 ? ` (attempt ${attempt})` : ""}`;
  const what = Object.values(details).filter((value) => value !== null && value !== undefined);
  return `${type}${where}${what.length > 0 ? ` ${what.map((value) => JSON.stringify(value)).join(" ")}` : ""}`;
}
