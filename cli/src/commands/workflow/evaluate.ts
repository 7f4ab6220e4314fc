// holdfast workflow evaluate EXPRESSION: tries an expression of a workflow, with the limits that it has in a run.

import { UsageError } from "@holdfast/kit/settings";
import { ExpressionError, openEvaluator } from "@holdfast/workflows/expressions/evaluator";
import type { Command } from "commander";
import { Refusal } from "../../failure.ts";
import { jsonText } from "../../output.ts";
import { readText } from "./file.ts";

export function addEvaluate(workflow: Command): void {
  workflow
    .command("evaluate")
    .description("evaluate an expression as a workflow would, without a server")
    .argument("<expression>", "JSONata, without ${{ }}")
    .option("--context <file>", "JSON with what it can use: input, nodes, run; - for standard input")
    .action(async (expression: string, options: { context?: string }) => {
      const evaluator = openEvaluator();
      try {
        const value = await evaluator.evaluate(expression, contextIn(options.context));
        process.stdout.write(`${jsonText(value ?? null)}\n`);
      } catch (error) {
        if (!(error instanceof ExpressionError)) throw error;
        const nextStep =
          "Correct the expression, or the context. JSONata is documented at https://docs.jsonata.org.";
        throw new Refusal("expression_failed", { message: error.message, nextStep });
      } finally {
        await evaluator.close();
      }
    });
}

function contextIn(file: string | undefined): object {
  if (file === undefined) return {};
  try {
    const value: unknown = JSON.parse(readText(file));
    if (typeof value === "object" && value !== null) return value;
  } catch (error) {
    if (error instanceof UsageError) throw error;
  }
  throw new UsageError(`${file} does not contain a JSON object.`);
}
