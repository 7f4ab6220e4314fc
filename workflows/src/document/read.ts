// Reads a workflow document from YAML or JSON, of version 1 or of the source system, and says what is wrong with it and where.

import { problemInWords } from "@holdfast/contracts/problem-words";
import type { z } from "zod";
import { validate } from "../validate/validate.ts";
import { type Finding, isConnectorProblem, type Path, type Problem } from "./problem.ts";
import { WorkflowDocument } from "./schema.ts";
import { MOST_PROBLEMS, parseSource } from "./source.ts";
import { upgradeV2, V2Document } from "./v2.ts";

export type ReadWorkflow =
  | { ok: true; document: WorkflowDocument; version: "1" | "v2" }
  | { ok: false; problems: Problem[] };

export function readWorkflow(text: string): ReadWorkflow {
  const parsed = parseSource(text);
  if ("problems" in parsed) return { ok: false, problems: parsed.problems };
  const { value, place } = parsed.source;
  const read = isV2(value) ? readV2(value) : readV1(value);
  if ("document" in read) return { ok: true, ...read };
  const problems = read.findings
    .slice(0, MOST_PROBLEMS)
    .map(place)
    .sort((a, b) => a.line - b.line || a.column - b.column);
  return { ok: false, problems };
}

type Read = { document: WorkflowDocument; version: "1" | "v2" } | { findings: Finding[] };

function readV1(value: unknown): Read {
  const parsed = WorkflowDocument.safeParse(value);
  if (!parsed.success) return { findings: parsed.error.issues.flatMap(findingsOf) };
  const findings = validate(parsed.data);
  return findings.length > 0 ? { findings } : { document: parsed.data, version: "1" };
}

const isV2 = (value: unknown) => (value as { version?: unknown } | null)?.version === "v2";

function readV2(value: unknown): Read {
  const parsed = V2Document.safeParse(value);
  if (!parsed.success) return { findings: parsed.error.issues.flatMap(findingsOf) };
  const { document, originOf, findings } = upgradeV2(parsed.data);
  if (findings.length > 0) return { findings };
  const form = WorkflowDocument.safeParse(document);
  const found = form.success
    ? validate(form.data).filter((finding) => !isOfOtherAgents(finding, form.data))
    : form.error.issues.flatMap(findingsOf);
  if (!form.success || found.length > 0) {
    return { findings: found.map((finding) => ({ ...finding, path: originOf(finding.path), offset: 0 })) };
  }
  return { document: form.data, version: "v2" };
}

/** Steps on agents of the source system have the forms of its connectors, and secrets that are not taken over. */
function isOfOtherAgents({ code, path }: Finding, { nodes }: WorkflowDocument): boolean {
  const node = nodes[String(path[1])];
  return isConnectorProblem(code) && node?.type === "connector.action" && node.execution?.mode === "node";
}

type Issue = z.core.$ZodIssue;

function findingsOf(issue: Issue): Finding[] {
  const path = issue.path.filter((part) => typeof part !== "symbol") as Path;
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => finding(`${key} is not a field here.`, [...path, key]));
  }
  // The key itself is wrong, not what it stands for.
  if (issue.code === "invalid_key") return [finding(`${issue.issues[0]?.message ?? issue.message}.`, path)];
  if (issue.code === "invalid_union" && "discriminator" in issue) {
    const field = String(issue.discriminator);
    return [finding("The type is unknown, or missing.", path.at(-1) === field ? path : [...path, field])];
  }
  const words = problemInWords(issue);
  const subject = words === issue.message ? "" : `${path.at(-1) ?? "The document"} `;
  return [finding(`${subject}${words}.`, path)];
}

function finding(message: string, path: Path): Finding {
  return { code: "schema", message, path };
}
