// Workflow documents in files, for the commands that read them.

import { readFileSync } from "node:fs";
import { UsageError } from "@holdfast/kit/settings";
import type { Problem } from "@holdfast/workflows/document/problem";
import { type ReadWorkflow, readWorkflow } from "@holdfast/workflows/document/read";
import { Refusal } from "../../failure.ts";

/** `-` is standard input. */
export function readText(path: string): string {
  try {
    return readFileSync(path === "-" ? 0 : path, "utf8");
  } catch (error) {
    throw new UsageError(`Cannot read ${path}: ${(error as Error).message}`);
  }
}

/** A document that cannot be run is refused, with every problem and its place. */
export function readDocument(path: string): Extract<ReadWorkflow, { ok: true }> & { text: string } {
  const text = readText(path);
  const read = readWorkflow(text);
  if (read.ok) return { ...read, text };
  throw invalid(path, read.problems);
}

function invalid(path: string, problems: readonly Problem[]): Refusal {
  const count = `${problems.length} ${problems.length === 1 ? "problem" : "problems"}`;
  return new Refusal("workflow_invalid", {
    message: [`${path} has ${count}:`, ...problems.map((problem) => `  ${line(path, problem)}`)].join("\n"),
    nextStep: "Correct the document. Its schema is docs/reference/workflow.v1.schema.json.",
    details: { problems },
  });
}

/** As compilers write it, so that editors find the place. */
function line(file: string, { line, column, message, path }: Problem): string {
  return `${file}:${line}:${column}: ${path ? `${path}: ` : ""}${message}`;
}
