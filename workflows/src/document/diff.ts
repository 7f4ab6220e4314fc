// What is different between two documents, by their structure: the order of fields, comments and the format do not matter.

import { isDeepStrictEqual } from "node:util";
import { type Path, pathText } from "./problem.ts";
import type { WorkflowDocument } from "./schema.ts";

export type Change =
  | { kind: "added"; path: string; after: unknown }
  | { kind: "removed"; path: string; before: unknown }
  | { kind: "changed"; path: string; before: unknown; after: unknown };

/** Nodes that only one has are one change each; within nodes that both have, each field is. */
export function diffWorkflows(before: WorkflowDocument, after: WorkflowDocument): Change[] {
  return diffValues(before, after, []);
}

function diffValues(before: unknown, after: unknown, path: Path): Change[] {
  if (isDeepStrictEqual(before, after)) return [];
  if (isRecord(before) && isRecord(after)) {
    const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])].toSorted();
    return keys.flatMap((key) => diffField(before, after, [...path, key]));
  }
  return [{ kind: "changed", path: pathText(path), before, after }];
}

type Fields = Record<string, unknown>;

function diffField(before: Fields, after: Fields, path: Path): Change[] {
  const key = String(path.at(-1));
  const text = pathText(path);
  if (!Object.hasOwn(before, key)) return [{ kind: "added", path: text, after: after[key] }];
  if (!Object.hasOwn(after, key)) return [{ kind: "removed", path: text, before: before[key] }];
  return diffValues(before[key], after[key], path);
}

function isRecord(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
